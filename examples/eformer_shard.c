/* eformer_shard.c - a sharded quantized array: eformer's
 * quantize(w).with_sharding(NamedSharding(mesh, PartitionSpec("tp", None))). */
#include <lowbit_mesh.h>
#include <stdio.h>

static lb_array *uniform(lb_ctx *cx, uint64_t seed, lb_shape shape)
{
    return lb_random_uniform(cx, (lb_key){seed, 0}, LB_F32, shape, -1, 1);
}

/* The program of each rank. */
static int rank_main(lb_comm *comm, void *user)
{
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, "tp=4", NULL);
    float y[8];
    (void)user;
    lb_array *w = lb_quantize(cx, uniform(cx, 8, LB_SHAPE(8, 32)),
                              &(lb_quant_config){.format = "int8"});
    w = lb_shard(cx, mesh, w, "P(tp, None)");
    lb_array *z = lb_matmul(cx, w, uniform(cx, 10, LB_SHAPE(32)));
    const bool ok = lb_read(cx, z, y, sizeof y);
    if (ok && comm->rank == 0) {
        printf("%s (%d,%d), %s; here (%d,%d)\n", lb_format_of(w),
               (int)lb_dim(w, 0), (int)lb_dim(w, 1),
               lb_is_sharded(w) ? "sharded" : "whole",
               (int)lb_dim(lb_local(cx, w), 0),
               (int)lb_dim(lb_local(cx, w), 1));
        for (int i = 0; i < 8; i++)
            printf("%.4f%s", (double)y[i], i < 7 ? " " : "\n");
    }
    if (!ok) fprintf(stderr, "eformer_shard: %s\n", lb_error(cx));
    lb_mesh_close(mesh);
    lb_close(cx);
    return !ok;
}

int main(void)
{
    return lb_mesh_run(4, rank_main, NULL) != 0;
}
