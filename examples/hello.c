/* hello.c - two arrays, a product, and one look at the error at the end. */
#include <lowbit.h>
#include <stdio.h>

int main(void)
{
    const float weights[] = {1, 0, -1, 0, 2, -1};
    lb_ctx *cx = lb_open(NULL);
    lb_array *x = lb_iota(cx, LB_F32, LB_SHAPE(4, 2), 0); /* 0 0 1 1 2 2 .. */
    lb_array *w = lb_from(cx, LB_F32, LB_SHAPE(2, 3), weights);

    lb_array *y = lb_matmul(cx, x, w);     /* (4,2) x (2,3) -> (4,3) */
    y = lb_add(cx, y, lb_scalar(cx, 0.5)); /* weak: y stays f32 */
    lb_array *p = lb_softmax(cx, y, -1);

    float row[4][3];
    if (!lb_read(cx, p, row, sizeof row)) {
        fprintf(stderr, "hello: %s\n", lb_error(cx));
        lb_close(cx);
        return 1;
    }
    for (int i = 0; i < 4; i++)
        printf("%.4f %.4f %.4f\n", row[i][0], row[i][1], row[i][2]);
    lb_close(cx); /* and with it all arrays */
    return 0;
}
