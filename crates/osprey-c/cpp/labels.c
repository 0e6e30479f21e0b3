/* The C interface: labels from a file, each XORed with its neighbour, written to another file.
 *
 *     ./labels 1000 IN OUT
 *
 * The labels live in the region; in a speculative pass the files are not read or written, only their order of touches
 * is left. C as of 1990. */
#include <osprey.h>

#include <stdio.h>
#include <stdlib.h>

enum { LABEL = 16 };

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, osp_error());
    return 1;
}

int main(int argc, char **argv) {
    size_t count, i, k;
    unsigned char *labels;
    FILE *in, *out;

    if (argc != 4 || (count = (size_t)strtoul(argv[1], NULL, 10)) == 0) {
        fprintf(stderr, "usage: labels COUNT IN OUT\n");
        return 2;
    }
    if (osp_init() != 0) return fail("osp_init");
    labels = osp_alloc(count * LABEL);
    if (!labels) return fail("osp_alloc");

    /* Speculation has no file to open; everything after this line is the same in every pass. */
    in = osp_speculating() ? NULL : fopen(argv[2], "rb");
    out = osp_speculating() ? NULL : fopen(argv[3], "wb");
    if (!osp_speculating() && (!in || !out)) return perror(in ? argv[3] : argv[2]), 1;
    if (osp_fread(labels, LABEL, count, in) != count) return fail("IN holds fewer labels than COUNT");

    osp_mark("start");
    for (i = 1; i < count; i++) {
        for (k = 0; k < LABEL; k++) labels[i * LABEL + k] ^= labels[(i - 1) * LABEL + k];
    }
    osp_mark("stop");

    if (osp_fwrite(labels, LABEL, count, out) != count) return fail("osp_fwrite");
    if (in) fclose(in);
    if (out) fclose(out);
    osp_free(labels, count * LABEL);
    osp_finish();
    return 0;
}
