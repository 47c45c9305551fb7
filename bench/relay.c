/* A raw TCP relay: the least that any process between two sockets must do.
 *
 *     relay TARGET_PORT
 *
 * It listens on a free loopback port, which it prints; each accepted connection is joined with one
 * to TARGET_PORT, and bytes are copied both ways: one recv of up to 256 KiB, then send until all
 * is gone. What a slow reader does not take waits in the direction's buffer, and that direction
 * is not read meanwhile. It looks at no byte. One thread, epoll, TCP_NODELAY.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 256 * 1024, MAX_EVENTS = 64 };

/* One direction: what was read from `from` and not yet sent to `to` lies in [start, end). */
struct direction {
    int from, to;
    size_t start, end;
    char *bytes;
};

/* What an epoll event points to: an end of a pair, with the direction it reads and the one it writes. */
struct end {
    struct direction *in, *out;
    struct end *other;
};

static int epoll_fd;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static struct sockaddr_in loopback(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static int listen_anywhere(void) {
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, 512) ||
        getsockname(fd, (struct sockaddr *)&address, &size))
        die("listen");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static int connect_to(int port) {
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) die("connect");
    return fd;
}

static void set_nodelay(int fd) {
    int one = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) die("setsockopt");
}

/* Watches for input unless the direction holds bytes, for output only while the other one does. */
static void watch(struct end *end, int operation) {
    struct epoll_event event = {.data.ptr = end};
    if (end->in->start == end->in->end) event.events |= EPOLLIN;
    if (end->out->start < end->out->end) event.events |= EPOLLOUT;
    if (epoll_ctl(epoll_fd, operation, end->in->from, &event)) die("epoll_ctl");
}

static struct direction *new_direction(int from, int to) {
    struct direction *direction = calloc(1, sizeof *direction);
    if (!direction || !(direction->bytes = malloc(READ_BYTES))) die("malloc");
    direction->from = from;
    direction->to = to;
    return direction;
}

static void join(int accepted, int target_port) {
    int connected = connect_to(target_port);
    struct end *ends = calloc(2, sizeof *ends);
    if (!ends) die("calloc");
    set_nodelay(accepted);
    set_nodelay(connected);
    ends[0].in = ends[1].out = new_direction(accepted, connected);
    ends[1].in = ends[0].out = new_direction(connected, accepted);
    ends[0].other = &ends[1];
    ends[1].other = &ends[0];
    watch(&ends[0], EPOLL_CTL_ADD);
    watch(&ends[1], EPOLL_CTL_ADD);
}

/* The pair is leaked on purpose: an event for its other end may be in hand, and runs are short. */
static void part(struct end *end) {
    close(end->in->from);
    close(end->other->in->from);
    end->in->from = end->other->in->from = -1;
}

/* Sends what the direction holds; returns 0 where the connection is gone. */
static int drain(struct direction *direction) {
    while (direction->start < direction->end) {
        ssize_t count = send(direction->to, direction->bytes + direction->start,
                             direction->end - direction->start, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0) return errno == EAGAIN || errno == EINTR;
        direction->start += count;
    }
    direction->start = direction->end = 0;
    return 1;
}

static int fill(struct direction *direction) {
    ssize_t count = recv(direction->from, direction->bytes, READ_BYTES, MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    direction->end = count;
    return count > 0;
}

static void serve(struct end *end, unsigned events) {
    int was_held = end->in->end > 0, was_owed = end->out->end > 0;
    if (end->in->from < 0) return;
    if ((events & EPOLLOUT) && !drain(end->out)) return part(end);
    if ((events & ~EPOLLOUT) && end->in->end == 0 && (!fill(end->in) || !drain(end->in)))
        return part(end);
    int is_changed = was_held != (end->in->end > 0) || was_owed != (end->out->end > 0);
    if (is_changed) {
        watch(end, EPOLL_CTL_MOD);
        watch(end->other, EPOLL_CTL_MOD);
    }
}

int main(int argc, char **argv) {
    struct epoll_event events[MAX_EVENTS];
    struct epoll_event listening = {.events = EPOLLIN}; /* no end: a new connection */
    int server, target_port = argc == 2 ? atoi(argv[1]) : 0;
    if (target_port <= 0 || target_port > 65535) {
        fprintf(stderr, "usage: relay TARGET_PORT\n");
        return 2;
    }
    if ((epoll_fd = epoll_create1(0)) < 0) die("epoll_create1");
    server = listen_anywhere();
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, server, &listening)) die("epoll_ctl");
    for (;;) {
        int count = epoll_wait(epoll_fd, events, MAX_EVENTS, -1);
        for (int index = 0; index < count; index++) {
            struct end *end = events[index].data.ptr;
            if (end)
                serve(end, events[index].events);
            else
                join(accept(server, NULL, NULL), target_port);
        }
    }
}
