#include "net/address.h"
#include "net/node.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static int
bad (const char *text, char *error, size_t error_size)
{
  snprintf (error, error_size,
            "\"%s\" is not a numeric ADDRESS:PORT, such as 10.0.0.1:10810 "
            "or [fd00::1]:10810",
            text);
  return -1;
}

/* 1 to 65535, digits only; 0 where it is not. */
static unsigned
parse_port (const char *text)
{
  unsigned port = 0;

  if (!*text || *text == '0')
    return 0;
  for (; *text; text++) {
    if (*text < '0' || *text > '9')
      return 0;
    port = port * 10 + (unsigned)(*text - '0');
    if (port > 65535)
      return 0;
  }
  return port;
}

int
tl_address_parse (const char *text, struct tl_address *address, char *error,
                  size_t error_size)
{
  char host[64];
  bool six = text[0] == '[';
  const char *begin = six ? text + 1 : text;
  const char *end = six ? strchr (text, ']') : strchr (text, ':');
  const char *colon = six && end ? end + 1 : end;
  unsigned port;

  memset (address, 0, sizeof *address);
  if (!end || *colon != ':' || (size_t)(end - begin) >= sizeof host)
    return bad (text, error, error_size);
  port = parse_port (colon + 1);
  if (!port)
    return bad (text, error, error_size);
  memcpy (host, begin, (size_t)(end - begin));
  host[end - begin] = 0;

  if (six) {
    /* Unlike inet_pton it knows the zone of a link-local address. */
    struct addrinfo hints = {.ai_family = AF_INET6, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found;

    if (getaddrinfo (host, NULL, &hints, &found) != 0)
      return bad (text, error, error_size);
    memcpy (&address->storage, found->ai_addr, found->ai_addrlen);
    address->length = found->ai_addrlen;
    freeaddrinfo (found);
  } else {
    struct sockaddr_in *in = (struct sockaddr_in *)&address->storage;

    /* getaddrinfo would take 127.1 and 0x7f000001 as well. */
    if (inet_pton (AF_INET, host, &in->sin_addr) != 1)
      return bad (text, error, error_size);
    in->sin_family = AF_INET;
    address->length = sizeof *in;
  }
  tl_address_set_port (address, port);
  return 0;
}

int
tl_address_check (const char *text, char *error, size_t error_size)
{
  struct tl_address address;

  return tl_address_parse (text, &address, error, error_size);
}

/* As an IPv6 address, IPv4 in its mapped form. */
static void
as_six (const struct tl_address *address, struct in6_addr *six)
{
  if (address->storage.ss_family == AF_INET6)
    *six = ((const struct sockaddr_in6 *)&address->storage)->sin6_addr;
  else {
    const struct sockaddr_in *in =
        (const struct sockaddr_in *)&address->storage;

    memset (six, 0, sizeof *six);
    six->s6_addr[10] = six->s6_addr[11] = 0xff;
    memcpy (&six->s6_addr[12], &in->sin_addr, 4);
  }
}

bool
tl_address_wildcard (const struct tl_address *address)
{
  static const struct in6_addr four = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
  struct in6_addr six;

  as_six (address, &six);
  return IN6_IS_ADDR_UNSPECIFIED (&six) ||
         memcmp (&six, &four, sizeof six) == 0;
}

static unsigned
zone (const struct tl_address *address)
{
  if (address->storage.ss_family != AF_INET6)
    return 0;
  return ((const struct sockaddr_in6 *)&address->storage)->sin6_scope_id;
}

bool
tl_address_same_host (const struct tl_address *a, const struct tl_address *b)
{
  struct in6_addr six_a, six_b;

  as_six (a, &six_a);
  as_six (b, &six_b);
  if (memcmp (&six_a, &six_b, sizeof six_a) != 0)
    return false;
  return !zone (a) || !zone (b) || zone (a) == zone (b);
}

unsigned
tl_address_port (const struct tl_address *address)
{
  if (address->storage.ss_family == AF_INET6)
    return ntohs (((const struct sockaddr_in6 *)&address->storage)->sin6_port);
  return ntohs (((const struct sockaddr_in *)&address->storage)->sin_port);
}

void
tl_address_set_port (struct tl_address *address, unsigned port)
{
  if (address->storage.ss_family == AF_INET6)
    ((struct sockaddr_in6 *)&address->storage)->sin6_port =
        htons ((uint16_t)port);
  else
    ((struct sockaddr_in *)&address->storage)->sin_port =
        htons ((uint16_t)port);
}

void
tl_address_format (const struct tl_address *address, char text[TL_ADDRESS_TEXT])
{
  char host[TL_ADDRESS_TEXT - 16];

  if (getnameinfo ((const struct sockaddr *)&address->storage, address->length,
                   host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
    strcpy (host, "?");
  snprintf (text, TL_ADDRESS_TEXT,
            address->storage.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
            tl_address_port (address));
}
