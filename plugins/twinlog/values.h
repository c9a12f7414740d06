/* The table of parameters: their words, and what each takes for a value.
 * Internal to the parameters.
 */
#ifndef TWINLOG_VALUES_H
#define TWINLOG_VALUES_H

#include "parameters.h"

struct tl_parameter {
  const char *key;
  /* Take the text of a value, which lives as long as P does, and fill in the
   * field of P.  NULL, or what is allowed, to be read after "KEY=VALUE: "; it
   * may be in SPACE.
   */
  const char *(*parse) (struct tl_parameters *p, const char *text, char *space,
                        size_t space_size);
  bool required;
};

extern const struct tl_parameter tl_parameter_table[TL_KEYS];

#endif
