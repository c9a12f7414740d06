/* Numeric addresses of the mirror channel. */
#ifndef TWINLOG_NET_ADDRESS_H
#define TWINLOG_NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct tl_address {
  struct sockaddr_storage storage;
  socklen_t length; /* 0: none */
};

#define TL_ADDRESS_TEXT 96

/* Read ADDRESS:PORT or [ADDRESS]:PORT.  0, or -1 with one line in ERROR. */
int tl_address_parse (const char *text, struct tl_address *address, char *error,
                      size_t error_size);

/* 0.0.0.0 or [::]. */
bool tl_address_wildcard (const struct tl_address *address);

/* The same host, whatever the ports; an IPv4 address equals its form in IPv6.
 */
bool tl_address_same_host (const struct tl_address *a,
                           const struct tl_address *b);

unsigned tl_address_port (const struct tl_address *address);
void tl_address_set_port (struct tl_address *address, unsigned port);

/* As tl_address_parse reads it. */
void tl_address_format (const struct tl_address *address,
                        char text[TL_ADDRESS_TEXT]);

#endif
