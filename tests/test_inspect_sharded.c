/* test_inspect_sharded.c - sharded arrays as text, as numbers, and their
 * configuration. */
/* ctest: skip-ref */
#include <pthread.h>

#include "lowbit_mesh.h"
#include "refused.h"

/* CHECK is for one thread at a time. */
static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;

static void safely(bool ok, int line, const char *what)
{
    pthread_mutex_lock(&checking);
    check_true(ok, __FILE__, line, what);
    pthread_mutex_unlock(&checking);
}
#define SAFELY(OK) safely((OK), __LINE__, #OK)

static int inspects(lb_comm *comm, void *user)
{
    (void)user;
    char text[4096], whole[4096];
    float x[256], y[256];
    lb_quant_config c = {.format = "nf4", .block_size = 32};
    lb_ctx *cx = lb_open(&(lb_options){.threads = 1});
    lb_mesh *mesh = lb_mesh_open(cx, comm, "dp=2", NULL);
    lb_array *a = lb_random_normal(cx, (lb_key){1, 1}, LB_F32, LB_SHAPE(4, 64));
    lb_array *q = lb_quantize(cx, a, &c);
    lb_array *s = lb_shard(cx, mesh, q, "P(dp, None)");
    const char *say = "nf4 f32(4,64), 80 bytes on this rank, sharded "
                      "P(dp, None) over dp=2";
    SAFELY(lb_describe(s, text, sizeof text) == (int64_t)strlen(say));
    SAFELY(strcmp(text, say) == 0);
    const lb_print_options o = {.no_header = true};
    SAFELY(lb_to_string_with(cx, q, &o, whole, sizeof whole) > 0);
    SAFELY(lb_to_string_with(cx, s, &o, text, sizeof text) > 0);
    SAFELY(strcmp(text, whole) == 0);
    SAFELY(lb_read_f32(cx, q, x, 256) && lb_read_f32(cx, s, y, 256));
    SAFELY(memcmp(x, y, sizeof x) == 0);
    SAFELY(lb_config_of(cx, s, &c) && c.block_size == 32);
    SAFELY(lb_error_status(cx) == LB_OK);
    lb_mesh_close(mesh);
    lb_close(cx);
    return 0;
}

int main(void)
{
    SAFELY(lb_mesh_run(2, inspects, NULL) == 0);
    return check_report("inspect_sharded");
}
