/* tree.c - arrays by name: a list of references, and a hash table of indices
 * into it (open addressing, at most half full).
 */
#include <string.h>

#include "core/core.h"

typedef struct tree_item {
    char *name;
    size_t got;
    uint32_t hash;
    lb_array *array; /* a reference */
} tree_item;

struct lb_tree {
    lb_ctx *cx;
    size_t got;
    tree_item *item;
    int n, room;
    size_t item_got;
    int32_t *slot; /* index of an item, or -1; 2 * room of them */
    size_t slot_got;
};

lb_ctx *lb_tree_context(const lb_tree *t)
{
    return t ? t->cx : NULL;
}

/* ---- the table ----------------------------------------------------------- */

static uint32_t hash_of(const char *name) /* FNV-1a */
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

static int index_of(const lb_tree *t, const char *name)
{
    if (!t || !name || !t->room) return -1;
    const uint32_t mask = 2 * (uint32_t)t->room - 1, hash = hash_of(name);
    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        const int32_t k = t->slot[i];
        if (k < 0 ||
            (t->item[k].hash == hash && strcmp(t->item[k].name, name) == 0))
            return k;
    }
}

static void enter_slot(lb_tree *t, int32_t k)
{
    const uint32_t mask = 2 * (uint32_t)t->room - 1;
    uint32_t i = t->item[k].hash & mask;
    while (t->slot[i] >= 0)
        i = (i + 1) & mask;
    t->slot[i] = k;
}

static void fill_slots(lb_tree *t)
{
    memset(t->slot, -1, 2 * (size_t)t->room * sizeof *t->slot);
    for (int32_t k = 0; k < t->n; k++)
        enter_slot(t, k);
}

static bool grow(lb_tree *t)
{
    enum { FIRST = 16, MOST = 1 << 28 };
    lb_heap *heap = t->cx->heap;
    size_t item_got, slot_got;
    const int room = t->room ? 2 * t->room : FIRST;
    if (room > MOST)
        return lb_fail(t->cx, LB_E_SIZE, "tree: more than %d arrays", MOST);
    tree_item *item =
        lb_heap_alloc(heap, (size_t)room * sizeof *item, &item_got);
    int32_t *slot =
        lb_heap_alloc(heap, 2 * (size_t)room * sizeof *slot, &slot_got);
    if (!item || !slot) {
        if (item) lb_heap_free(heap, item, item_got);
        if (slot) lb_heap_free(heap, slot, slot_got);
        return lb_fail(t->cx, LB_E_NOMEM, "out of memory (a tree of %d arrays)",
                       t->n);
    }
    if (t->room) {
        memcpy(item, t->item, (size_t)t->n * sizeof *item);
        lb_heap_free(heap, t->item, t->item_got);
        lb_heap_free(heap, t->slot, t->slot_got);
    }
    t->item = item;
    t->item_got = item_got;
    t->slot = slot;
    t->slot_got = slot_got;
    t->room = room;
    fill_slots(t);
    return true;
}

/* ---- opening ------------------------------------------------------------- */

lb_tree *lb_tree_open(lb_ctx *cx)
{
    size_t got;
    if (!cx) return NULL;
    lb_tree *t = lb_heap_alloc(cx->heap, sizeof *t, &got);
    if (!t) {
        lb_fail(cx, LB_E_NOMEM, "out of memory (a tree)");
        return NULL;
    }
    *t = (lb_tree){.cx = cx, .got = got};
    return t;
}

void lb_tree_clear(lb_tree *t)
{
    for (int i = 0; t && i < t->n; i++) {
        lb_unref(t->item[i].array);
        lb_heap_free(t->cx->heap, t->item[i].name, t->item[i].got);
    }
    if (!t || !t->n) return;
    t->n = 0;
    fill_slots(t);
}

void lb_tree_close(lb_tree *t)
{
    if (!t) return;
    lb_heap *heap = t->cx->heap;
    lb_tree_clear(t);
    if (t->room) {
        lb_heap_free(heap, t->item, t->item_got);
        lb_heap_free(heap, t->slot, t->slot_got);
    }
    lb_heap_free(heap, t, t->got);
}

lb_tree *lb_tree_copy(const lb_tree *t)
{
    lb_tree *to = t ? lb_tree_open(t->cx) : NULL;
    for (int i = 0; to && i < t->n; i++) {
        if (lb_tree_set(to, t->item[i].name, t->item[i].array)) continue;
        lb_tree_close(to);
        return NULL;
    }
    return to;
}

/* ---- arrays -------------------------------------------------------------- */

static void put(lb_array **slot, lb_array *a)
{
    lb_array *old = *slot;
    *slot = lb_ref(a);
    lb_unref(old);
}

static bool add(lb_tree *t, const char *name, lb_array *a)
{
    const size_t size = strlen(name) + 1;
    size_t got;
    if (t->n == t->room && !grow(t)) return false;
    char *own = lb_heap_alloc(t->cx->heap, size, &got);
    if (!own)
        return lb_fail(t->cx, LB_E_NOMEM, "out of memory (a tree of %d arrays)",
                       t->n);
    memcpy(own, name, size);
    t->item[t->n] = (tree_item){own, got, hash_of(name), lb_ref(a)};
    enter_slot(t, t->n++);
    return true;
}

bool lb_tree_set(lb_tree *t, const char *name, lb_array *a)
{
    if (!t) return false;
    if (!name) return lb_fail(t->cx, LB_E_NULL, "tree: the name is NULL");
    if (!a)
        return lb_fail(t->cx, LB_E_NULL, "tree: the array '%.100s' is NULL",
                       name);
    const int i = index_of(t, name);
    if (i < 0) return add(t, name, a);
    put(&t->item[i].array, a);
    return true;
}

lb_array *lb_tree_find(const lb_tree *t, const char *name)
{
    const int i = index_of(t, name);
    return i < 0 ? NULL : t->item[i].array;
}

bool lb_tree_has(const lb_tree *t, const char *name)
{
    return index_of(t, name) >= 0;
}

static int must_find(lb_tree *t, const char *name)
{
    const int i = index_of(t, name);
    if (i >= 0) return i;
    if (!name)
        lb_fail(t->cx, LB_E_NULL, "tree: the name is NULL");
    else if (!t->n)
        lb_fail(t->cx, LB_E_ARG, "tree: no array '%.100s': it is empty", name);
    else
        lb_fail(t->cx, LB_E_ARG,
                "tree: no array '%.100s' (%d arrays, e.g. '%.100s')", name,
                t->n, t->item[0].name);
    return -1;
}

lb_array *lb_tree_get(lb_tree *t, const char *name)
{
    const int i = t ? must_find(t, name) : -1;
    return i < 0 ? NULL : t->item[i].array;
}

bool lb_tree_remove(lb_tree *t, const char *name)
{
    const int i = t ? must_find(t, name) : -1;
    if (i < 0) return false;
    lb_unref(t->item[i].array);
    lb_heap_free(t->cx->heap, t->item[i].name, t->item[i].got);
    t->n--;
    memmove(t->item + i, t->item + i + 1, (size_t)(t->n - i) * sizeof *t->item);
    fill_slots(t);
    return true;
}

int lb_tree_count(const lb_tree *t)
{
    return t ? t->n : 0;
}

lb_array *lb_tree_at(const lb_tree *t, int i)
{
    return t && i >= 0 && i < t->n ? t->item[i].array : NULL;
}

const char *lb_tree_name(const lb_tree *t, int i)
{
    return t && i >= 0 && i < t->n ? t->item[i].name : NULL;
}

size_t lb_tree_nbytes(const lb_tree *t)
{
    size_t sum = 0;
    for (int i = 0; t && i < t->n; i++)
        sum += lb_nbytes(t->item[i].array);
    return sum;
}

/* ---- lists --------------------------------------------------------------- */

static bool check_list(lb_tree *t, const void *list, int n)
{
    if (n != t->n)
        return lb_fail(t->cx, LB_E_ARG, "tree: a list of %d for %d arrays", n,
                       t->n);
    if (n && !list) return lb_fail(t->cx, LB_E_NULL, "tree: the list is NULL");
    return true;
}

bool lb_tree_arrays(lb_tree *t, lb_array **list, int n)
{
    if (!t || !check_list(t, list, n)) return false;
    for (int i = 0; i < n; i++) {
        list[i] = lb_own(t->cx, lb_ref(t->item[i].array));
        if (!list[i]) return false;
    }
    return true;
}

bool lb_tree_replace(lb_tree *t, lb_array *const *list, int n)
{
    if (!t || !check_list(t, list, n)) return false;
    for (int i = 0; i < n; i++)
        if (!list[i])
            return lb_fail(t->cx, LB_E_NULL, "tree: the array '%.100s' is NULL",
                           t->item[i].name);
    for (int i = 0; i < n; i++)
        put(&t->item[i].array, list[i]);
    return true;
}
