# shellcheck shell=bash
# Two nodes of one volume on this machine, each with its own control socket,
# state and RAM, and the arbiter that orders them. To be sourced after
# steps.sh; the caller sets ROOT (of the checkout), BUILD and VOLUME_SIZE.

VOLUME=slog0
declare -A NODE_PID NODE_PORT

other_node() {
  if [ "$1" = a ]; then echo b; else echo a; fi
}

node_socket() {
  echo "$WORKDIR/$1.sock"
}

# on_node NODE COMMAND...: the twinlog command, spoken to that node.
on_node() {
  local node=$1
  shift
  "$BUILD/client/twinlog" --control "$WORKDIR/$node.ctl" "$@"
}

# await NODE STATE [SECONDS]
await() {
  on_node "$1" wait "$VOLUME" --for "$2" --timeout "${3:-60}" \
    >>"$WORKDIR/wait.log" 2>&1 ||
    fail "node $1 did not become $2 in ${3:-60} s" "$WORKDIR/node-$1.log"
}

port_is_taken() {
  (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Two ports that nothing listens on, below those the kernel hands out.
choose_ports() {
  local node port
  for node in a b; do
    port=$((20000 + RANDOM % 10000))
    while port_is_taken "$port" || [ "$port" = "${NODE_PORT[a]:-}" ]; do
      port=$((20000 + RANDOM % 10000))
    done
    NODE_PORT[$node]=$port
  done
}

may_lock_memory() {
  local effective
  effective=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
  [ $((0x$effective >> 14 & 1)) -eq 1 ]
}

# start_node NODE: one nbdkit in the foreground of its own session. Its RAM is
# anonymous memory: nothing of it survives the process.
start_node() {
  local node=$1 other lock=on
  other=$(other_node "$node")
  may_lock_memory || lock=off
  rm -f "$(node_socket "$node")"
  background "$WORKDIR/node-$node.log" \
    nbdkit --exit-with-parent -f --unix "$(node_socket "$node")" \
    "$BUILD/plugins/twinlog/nbdkit-twinlog-plugin.so" \
    "size=$VOLUME_SIZE" "name=$VOLUME" "node=$node" \
    "listen=127.0.0.1:${NODE_PORT[$node]}" \
    "peer=127.0.0.1:${NODE_PORT[$other]}" \
    "control=$WORKDIR/$node.ctl" "state=$WORKDIR/$node.state" \
    "lock=$lock" "arbiter=$ROOT/scripts/twinlog-arbiter-file $WORKDIR/arbiter"
  NODE_PID[$node]=$STARTED
  wait_until 30 node_is_up_or_gone "$node" || true
  node_is_up "$node" ||
    fail "node $node did not start" "$WORKDIR/node-$node.log"
}

node_is_up() {
  is_running "${NODE_PID[$1]}" && [ -S "$(node_socket "$1")" ] &&
    on_node "$1" status "$VOLUME" >/dev/null 2>&1
}

node_is_up_or_gone() {
  is_gone "${NODE_PID[$1]}" || node_is_up "$1"
}

# start_pair PRIMARY: both nodes, and the volume created on the first.
start_pair() {
  mkdir "$WORKDIR/arbiter"
  choose_ports
  start_node a
  start_node b
  await a Connected
  on_node "$1" create "$VOLUME" >"$WORKDIR/create.log" 2>&1 ||
    fail "twinlog create failed" "$WORKDIR/create.log"
  await_pair "$1"
}

# await_pair PRIMARY: until both copies are complete, seen from both nodes.
await_pair() {
  await "$1" Primary
  await "$1" Connected
  await "$1" UpToDate
  await "$1" peer:UpToDate
  await "$(other_node "$1")" UpToDate
}
