/* hint.c - "did you mean": the word with the smallest edit distance, or the
 * one that is completed. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "verb.h"

enum { LONGEST = 128 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Insertions, deletions, replacements and swaps of neighbours (Damerau and
 * Levenshtein), in any case; LONGEST for longer words. */
static int distance(const char *a, const char *b)
{
    int row[3][LONGEST + 1]; /* rolling: the last two rows and this one */
    const int n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (int j = 0; j <= m; j++)
        row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3];
        const int *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            const int other = last[j - 1] + !same(a[i - 1], b[j - 1]);
            now[j] = least(least(last[j], now[j - 1]) + 1, other);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
                same(a[i - 2], b[j - 1]))
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

/* The only word of the list that begins with these letters, of which there must
 * be three: "quant" for quantize. */
static const char *completed(const char *word, const char *const *list, int n)
{
    const size_t length = strlen(word);
    const char *found = NULL;
    for (int i = 0; i < n; i++) {
        size_t k = 0;
        while (k < length && list[i][k] && same(word[k], list[i][k]))
            k++;
        if (k < length) continue;
        if (found) return NULL;
        found = list[i];
    }
    return length < 3 ? NULL : found;
}

const char *nearest(const char *word, const char *const *list, int n)
{
    const char *best = NULL;
    const int length = (int)strlen(word);
    int most = length < 4 ? 1 : length < 8 ? 2 : 3;
    for (int i = 0; i < n; i++) {
        const int k = distance(word, list[i]);
        if (k > most || (best && k == most)) continue;
        best = list[i];
        most = k;
    }
    return best ? best : completed(word, list, n);
}
