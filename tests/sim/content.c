/* What bytes mean.  A write fills each sector with a pattern that names the
 * write and the sector, so that any sector found anywhere tells which version
 * it is.  Zeroes look alike: they may be any zero of that sector which is not
 * yet overtaken, and the checks take the one that accuses nobody.
 */
#include "sim.h"

#include <string.h>

#define WORDS (SECTOR / 8)

static uint64_t
word (uint32_t version, uint32_t sector, unsigned i)
{
  return version | (uint64_t)i << 32 | (uint64_t)sector << 40 |
         UINT64_C (0xa5) << 56;
}

/* Fill COUNT sectors from sector FIRST on with what VERSION writes there. */
void
content_fill (unsigned char *bytes, uint32_t version, uint32_t first,
              uint32_t count)
{
  for (uint32_t s = first; s < first + count; s++, bytes += SECTOR)
    for (unsigned i = 0; i < WORDS; i++) {
      uint64_t w = word (version, s, i);

      memcpy (bytes + i * 8, &w, 8);
    }
}

static bool
see_zero (const struct sector *sector, const unsigned char *bytes,
          uint64_t floor, struct seen *seen)
{
  uint64_t w[WORDS], all = 0;

  memcpy (w, bytes, sizeof w);
  for (unsigned i = 0; i < WORDS; i++)
    all |= w[i];
  if (all)
    return false;
  seen->version = 0;
  seen->most = 0;
  seen->least = UINT64_MAX;
  for (unsigned i = 0; i < sector->n_zeroes; i++) {
    uint64_t index = sector->zeroes[i];

    if (index > seen->most)
      seen->most = index;
    if (index >= floor && index < seen->least)
      seen->least = index;
  }
  if (seen->least == UINT64_MAX)
    seen->least = seen->most;
  if (sector->forgotten >= floor)
    seen->least = floor;
  return true;
}

static bool
see (const struct oracle *oracle, const unsigned char *bytes, uint32_t sector,
     uint64_t floor, struct seen *seen)
{
  uint64_t w;

  memcpy (&w, bytes, 8);
  if (w == 0)
    return see_zero (&oracle->sectors[sector], bytes, floor, seen);
  seen->version = (uint32_t)w;
  if (seen->version == 0 || seen->version > oracle->n)
    return false;

  const struct version *version = &oracle->versions[seen->version - 1];
  uint64_t words[WORDS], first = word (seen->version, sector, 0), wrong = 0;

  if (version->zero || sector < version->first ||
      sector >= version->first + version->count)
    return false;
  memcpy (words, bytes, sizeof words);
  for (unsigned i = 0; i < WORDS; i++)
    wrong |= words[i] ^ (first | (uint64_t)i << 32);
  seen->most = seen->least = version->index;
  return wrong == 0;
}

/* A block changes by whole writes only: where one sector shows a version, no
 * sector of the same block that this version covers may show an older one.
 */
static bool
torn (const struct oracle *oracle, uint32_t first, const struct seen *seen,
      uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    if (seen[i].version == 0 || (i > 0 && seen[i].most == seen[i - 1].most))
      continue;

    const struct version *v = &oracle->versions[seen[i].version - 1];

    for (uint32_t k = 0; k < n; k++)
      if (first + k >= v->first && first + k < v->first + v->count &&
          seen[k].most < v->index)
        return true;
  }
  return false;
}

/* Find out what COUNT sectors from FIRST on are, into SEEN.  False, and a
 * violation, where they are nothing that was ever written there, or a block is
 * torn.  FLOORS, or NULL, are the indexes below which zeroes cannot be.  WHERE
 * says whose bytes they are.
 */
bool
content_see (struct sim *sim, const unsigned char *bytes, uint32_t first,
             uint32_t count, const uint64_t *floors, struct seen *seen,
             const char *where)
{
  const struct oracle *oracle = &sim->oracle;

  for (uint32_t i = 0; i < count; i++)
    if (!see (oracle, bytes + (size_t)i * SECTOR, first + i,
              floors ? floors[i] : 0, &seen[i])) {
      sim_violate (sim, "%s: sector %u holds what nobody wrote there", where,
                   first + i);
      return false;
    }
  for (uint32_t i = 0; i < count;) {
    uint32_t n = SECTORS_PER_BLOCK - (first + i) % SECTORS_PER_BLOCK;

    if (n > count - i)
      n = count - i;
    if (torn (oracle, first + i, seen + i, n)) {
      sim_violate (sim, "%s: block %u is torn", where,
                   (first + i) / SECTORS_PER_BLOCK);
      return false;
    }
    i += n;
  }
  return true;
}

/* A zero with this INDEX was issued for the sector.  Where there is no room the
 * oldest is forgotten; a younger one always remains to explain zeroes.
 */
void
content_zero (struct sector *sector, uint64_t index)
{
  unsigned oldest = 0;

  if (sector->n_zeroes < ZEROES) {
    sector->zeroes[sector->n_zeroes++] = index;
    return;
  }
  for (unsigned i = 1; i < ZEROES; i++)
    if (sector->zeroes[i] < sector->zeroes[oldest])
      oldest = i;

  if (sector->zeroes[oldest] > sector->forgotten)
    sector->forgotten = sector->zeroes[oldest];
  sector->zeroes[oldest] = index;
}

/* Nothing older than INDEX may be seen by reads to come. */
void
content_raise (uint64_t *floor, uint64_t index)
{
  if (index > *floor)
    *floor = index;
}
