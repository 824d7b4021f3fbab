/* driver.c - runs a fuzzer as an ordinary test, for compilers without
 * libFuzzer: on each file, on its first half, and on a copy with one byte
 * changed.
 *
 *     fuzz_gguf FILE|DIRECTORY...
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz_container.h"

static long runs;

static void run(const uint8_t *bytes, size_t n)
{
    uint8_t *some =
        malloc(n ? n : 1); /* of the exact size: sanitizers detect overruns */
    if (!some) exit(1);
    memcpy(some, bytes, n);
    LLVMFuzzerTestOneInput(some, n);
    free(some);
    runs++;
}

static void run_file(const char *path)
{
    static uint8_t bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    run(bytes, n);
    run(bytes, n / 2);
    if (n) {
        bytes[n / 3] ^= 0x80;
        run(bytes, n);
    }
}

static void run_path(const char *path)
{
    struct stat st;
    DIR *dir =
        stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    if (!dir) {
        run_file(path);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        char inside[1024];
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        if (stat(inside, &st) == 0 && S_ISREG(st.st_mode)) run_file(inside);
    }
    closedir(dir);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        run_path(argv[i]);
    printf("%ld runs\n", runs);
    return runs == 0;
}
