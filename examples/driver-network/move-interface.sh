#!/bin/sh
# Moves a network interface of the node into the network namespace of a pod, configures it there, and moves it back. The
# driver names this program as a hook in CDI edits, so that the container runtime runs it on the node as root:
#
#   move-interface.sh in DRIVER HOST NAME [mtu MTU] [address CIDR]... [route DESTINATION GATEWAY]...
#     as a createRuntime hook, with the state of the container on standard input. GATEWAY is "-" if there is none.
#   move-interface.sh back DRIVER HOST
#     as a poststop hook, and by the driver. Does nothing if no pod has the interface.
#
# While a pod has the interface, its network namespace has the name "DRIVER:HOST:NAME:MTU" in /run/netns, with the MTU on
# the node if it was changed. So the namespace outlives the pod until the interface is back: with the namespace, the kernel
# would destroy a virtual interface, and return a physical one under its name in the pod.
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin

action=$1
host=$3
prefix=$2:$3:

fail() {
  echo "network interface $host: $*" >&2
  exit 1
}

has() { ip -n "$1" link show dev "$2" >/dev/null 2>&1; }

back() {
  for file in /run/netns/"$prefix"*; do
    [ -e "$file" ] || continue
    namespace=${file##*/}
    name=${namespace#"$prefix"}
    mtu=${name#*:}
    name=${name%%:*}
    if has "$namespace" "$name"; then
      ip -n "$namespace" link set dev "$name" down
      [ -z "$mtu" ] || ip -n "$namespace" link set dev "$name" mtu "$mtu"
      # Into the namespace of this process. The kernel removes addresses and routes.
      ip -n "$namespace" link set dev "$name" netns $$ name "$host"
    fi
    ip netns delete "$namespace"
  done
}

move_in() {
  own=/proc/$pid/ns/net
  [ ! "$own" -ef /proc/self/ns/net ] || fail "the pod uses the node's network"
  for file in /run/netns/"$prefix"*; do
    [ -e "$file" ] && [ ! "$file" -ef "$own" ] || continue
    name=${file##*/"$prefix"}
    ! has "${file##*/}" "${name%%:*}" || fail "another pod has it"
  done
  # Left by a container whose poststop hooks did not run.
  back
  namespace=$prefix$1:
  name=$1
  shift
  ip netns attach "$namespace" "$pid"
  # A runtime that implements linux.netDevices has moved it already.
  if ip link show dev "$host" >/dev/null 2>&1; then
    ip link set dev "$host" down
    ip link set dev "$host" netns "$namespace" name "$name"
  fi
  has "$namespace" "$name" || fail "it is not on the node"
  configure "$@"
}

configure() {
  ip -n "$namespace" link set dev "$name" up
  while [ $# -gt 0 ]; do
    case $1 in
    mtu)
      before=$(ip -n "$namespace" -o link show dev "$name" | sed -n 's/.* mtu \([0-9]*\) .*/\1/p')
      ip netns attach "$namespace$before" "$pid"
      ip netns delete "$namespace"
      namespace=$namespace$before
      ip -n "$namespace" link set dev "$name" mtu "$2"
      ;;
    address) ip -n "$namespace" address replace "$2" dev "$name" ;;
    route)
      [ "$3" = - ] && via= || via="via $3"
      # shellcheck disable=SC2086
      ip -n "$namespace" route replace "$2" $via dev "$name"
      shift
      ;;
    esac
    shift 2
  done
}

case $action in
in)
  pid=$(tr -d '\n' | sed -n 's/.*"pid": *\([0-9][0-9]*\).*/\1/p')
  [ -n "$pid" ] || fail "the runtime passes no process"
  shift 3
  move_in "$@"
  ;;
back) back ;;
*) fail "unknown action $action" ;;
esac
