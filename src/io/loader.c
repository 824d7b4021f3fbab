/* loader.c - what transformers takes packed, of the layouts that it loads. */
#include <string.h>

#include "io/entries.h"
#include "io/jsontext.h"

/* It makes packed layers of linear ones, whose weights are matrices called
 * P.weight, but for the output head; embeddings and experts in one tensor are
 * layers of another kind. */
const char *lb_linear_only(const lb_entry *e)
{
    size_t n;
    const char *role = lb_name_role(e->name);
    if (lb_role_is_embedding(role)) return "an embedding, not loaded packed";
    if (lb_role_is_head(role)) return "the output head, not loaded packed";
    if (e->rank != 2) return "not a matrix, not loaded packed";
    if (!lb_name_ends(e->name, ".weight", &n))
        return "not the weight of a layer, not loaded packed";
    return NULL;
}

void lb_put_texts(lb_bytes *to, const char *const *text, int64_t n)
{
    if (!text) {
        lb_bytes_text(to, "null");
        return;
    }
    lb_bytes_text(to, "[");
    for (int64_t i = 0; i < n; i++) {
        lb_bytes_text(to, "%s\n      ", i ? "," : "");
        lb_json_put(to, text[i], strlen(text[i]), true);
    }
    lb_bytes_text(to, n ? "\n    ]" : "]");
}
