/* product_lanes.h - packing and a 4x4 micro-kernel in portable C, for T.
 *
 * A template without a guard: product_plain.c includes it for each type, with
 * T and NAME(x) set. Panels are those of kernels/gemm.h with mr = nr = 4.
 */
typedef T NAME(vec) __attribute__((vector_size(16)));

/* Rows [0, m) to panels of four, zeros past m. */
static void NAME(pack)(const lb_block *from, int64_t m, int64_t k, void *to)
{
    T *dst = to;
    for (int64_t i = 0; i < m; i += 4)
        for (int64_t kk = 0; kk < k; kk++)
            for (int64_t r = i; r < i + 4; r++)
                *dst++ =
                    r < m ? ((const T *)from->p)[r * from->rs + kk * from->ks]
                          : 0;
}

/* c (m,n) += or = panels a (m,k) x b (n,k); ldc elements to a row of c. */
static void NAME(block)(int64_t m, int64_t n, int64_t k, const void *a,
                        const void *b, void *c, int64_t ldc, bool first)
{
    enum { W = 16 / sizeof(T), PER_ROW = 4 / W };
    for (int64_t i = 0; i < m; i += 4)
        for (int64_t j = 0; j < n; j += 4) {
            const T *p = (const T *)a + i * k, *q = (const T *)b + j * k;
            NAME(vec) s[4][PER_ROW] = {{{0}}};
            for (int64_t kk = 0; kk < k; kk++, p += 4, q += 4) {
                NAME(vec) v[PER_ROW];
                memcpy(v, q, sizeof v);
                for (int r = 0; r < 4; r++)
                    for (int h = 0; h < PER_ROW; h++)
                        s[r][h] += p[r] * v[h];
            }
            const T *sum = (const T *)s;
            for (int64_t r = 0; r < 4 && i + r < m; r++)
                for (int64_t h = 0; h < 4 && j + h < n; h++) {
                    T *to = (T *)c + (i + r) * ldc + j + h;
                    *to = first ? sum[r * 4 + h] : *to + sum[r * 4 + h];
                }
        }
}

#undef T
#undef NAME
