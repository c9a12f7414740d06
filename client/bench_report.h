/* Shows a result: a table for people, one JSON object for programs, a picture.
 */
#ifndef TWINLOG_CLIENT_BENCH_REPORT_H
#define TWINLOG_CLIENT_BENCH_REPORT_H

#include "bench.h"

#include <stdio.h>

void report_table (const struct bench_result *result, FILE *stream);

/* 0, or -1: not enough memory, or it cannot be written. */
int report_json (const struct bench_result *result, FILE *stream);

/* Can pictures be drawn here, into PATH?  An exit status; where not 0, one
 * line is in ERROR.
 */
int report_plot_check (const char *path, char *error, size_t error_size);

/* Draw into PATH, as SVG.  An exit status; where not 0, one line is in ERROR.
 */
int report_plot (const struct bench_result *result, const char *path,
                 char *error, size_t error_size);

/* "4 KiB", "zil", "zil+flush": what a row writes, into a buffer of 32. */
const char *report_size (const struct bench_row *row, char *text);

#endif
