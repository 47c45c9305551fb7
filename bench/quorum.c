/* The least that ordered delivery from three disks must do.
 *
 *     quorum FOLDER BURST_BYTES BURSTS_PER_S SECONDS
 *
 * Seven processes, as in replicated.py: a publisher, a leader, two followers, and a subscriber of each
 * of these three, joined by TCP over loopback. The leader sends each burst on, writes it to a file and
 * synchronises that; a follower does the same and answers. What the leader and one follower have is
 * committed: the leader says so, and everybody hands it to his subscriber. There are no elections, no
 * framing but a header, and nobody looks at a message. Prints the median, the 99th percentile and the
 * longest of the times from the publisher to a subscriber, in microseconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 256 * 1024, FILE_BYTES = 32 << 20, BURST_BYTES_MAX = 64 * 1024, HELD_MAX = 4096 };
enum kind { ENTRY, ACK, COMMIT };

/* Before each message; an entry's burst follows it. */
struct header {
    uint32_t kind, size;
    uint64_t number;
};

/* What has come from a connection and was not taken yet lies in [start, end). */
struct input {
    int fd, is_over;
    size_t start, end;
    char bytes[READ_BYTES];
};

/* A leader or a follower. */
struct replica {
    int file, subscriber;
    off_t offset;
    uint64_t durable, committed;
    char *held; /* HELD_MAX bursts, by number */
};

static size_t burst_bytes;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Joins two ends by TCP. */
static void join(int ends[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(server, (struct sockaddr *)&address, size) || listen(server, 1) ||
        getsockname(server, (struct sockaddr *)&address, &size))
        die("listen");
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (struct sockaddr *)&address, size) || (ends[1] = accept(server, NULL, NULL)) < 0)
        die("connect");
    for (int end = 0; end < 2; end++)
        if (setsockopt(ends[end], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) die("setsockopt");
    close(server);
}

static void send_all(int fd, const void *bytes, size_t size) {
    for (const char *at = bytes; size;) {
        ssize_t count = send(fd, at, size, MSG_NOSIGNAL);
        if (count < 0) die("send");
        at += count;
        size -= count;
    }
}

static void send_header(int fd, enum kind kind, uint64_t number) {
    struct header header = {.kind = kind, .number = number};
    send_all(fd, &header, sizeof header);
}

/* Reads what there is, once. */
static void fill(struct input *input) {
    memmove(input->bytes, input->bytes + input->start, input->end - input->start);
    input->end -= input->start;
    input->start = 0;
    ssize_t count = recv(input->fd, input->bytes + input->end, READ_BYTES - input->end, 0);
    if (count <= 0)
        input->is_over = 1;
    else
        input->end += count;
}

/* Returns the next so many octets that have come, or NULL. */
static char *take(struct input *input, size_t size) {
    if (input->end - input->start < size) return NULL;
    input->start += size;
    return input->bytes + input->start - size;
}

/* Returns the next header once all of its message has come, or NULL. */
static struct header *take_header(struct input *input) {
    struct header *header = (struct header *)(input->bytes + input->start);
    if (input->end - input->start < sizeof *header) return NULL;
    return take(input, sizeof *header + header->size) ? header : NULL;
}

static struct replica open_replica(const char *folder, int number, int subscriber) {
    struct replica replica = {.subscriber = subscriber, .held = malloc(HELD_MAX * burst_bytes)};
    char *zeros = calloc(1, FILE_BYTES), path[4096];
    snprintf(path, sizeof path, "%s/quorum-%d", folder, number);
    replica.file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (replica.file < 0 || !replica.held || !zeros) die(path);
    if (pwrite(replica.file, zeros, FILE_BYTES, 0) != FILE_BYTES || fsync(replica.file)) die("write");
    unlink(path);
    free(zeros);
    return replica;
}

static char *held(struct replica *replica, uint64_t number) {
    return replica->held + number % HELD_MAX * burst_bytes;
}

/* Writes the bursts behind what is durable, up to `last`, and synchronises them. */
static void persist(struct replica *replica, uint64_t last) {
    if (last == replica->durable) return;
    for (uint64_t number = replica->durable + 1; number <= last; number++) {
        if (replica->offset + (off_t)burst_bytes > FILE_BYTES) replica->offset = 0;
        if (pwrite(replica->file, held(replica, number), burst_bytes, replica->offset) < 0) die("write");
        replica->offset += burst_bytes;
    }
    if (fdatasync(replica->file)) die("fdatasync");
    replica->durable = last;
}

static void deliver(struct replica *replica, uint64_t committed) {
    while (replica->committed < committed)
        send_all(replica->subscriber, held(replica, ++replica->committed), burst_bytes);
}

static void publish(int leader, int bursts_per_s, int seconds) {
    char burst[BURST_BYTES_MAX] = {0};
    int64_t start_ns = now_ns();
    for (int64_t sent = 0; sent < (int64_t)bursts_per_s * seconds; sent++) {
        int64_t due_ns = start_ns + sent * 1000000000 / bursts_per_s;
        struct timespec due = {.tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        int64_t stamp_ns = now_ns();
        memcpy(burst, &stamp_ns, sizeof stamp_ns);
        send_all(leader, burst, burst_bytes);
    }
}

static void lead(const char *folder, int publisher, int followers[2], int subscriber) {
    struct replica replica = open_replica(folder, 0, subscriber);
    struct input *inputs = calloc(3, sizeof *inputs);
    uint64_t last = 0, acked[2] = {0, 0};
    inputs[0].fd = publisher;
    inputs[1].fd = followers[0];
    inputs[2].fd = followers[1];
    while (!inputs[0].is_over || acked[0] < last || acked[1] < last) {
        struct pollfd waiting[3];
        for (int index = 0; index < 3; index++)
            waiting[index] = (struct pollfd){.fd = inputs[index].is_over ? -1 : inputs[index].fd, .events = POLLIN};
        poll(waiting, 3, -1);
        for (int index = 0; index < 3; index++)
            if (waiting[index].revents) fill(&inputs[index]);
        for (char *burst; (burst = take(&inputs[0], burst_bytes));) {
            struct header header = {.kind = ENTRY, .size = burst_bytes, .number = ++last};
            memcpy(held(&replica, last), burst, burst_bytes);
            for (int index = 0; index < 2; index++) {
                send(followers[index], &header, sizeof header, MSG_MORE | MSG_NOSIGNAL);
                send_all(followers[index], burst, burst_bytes);
            }
        }
        persist(&replica, last);
        for (int index = 0; index < 2; index++)
            for (struct header *header; (header = take_header(&inputs[index + 1]));) acked[index] = header->number;
        uint64_t committed = acked[0] > acked[1] ? acked[0] : acked[1];
        if (committed > replica.committed) {
            for (int index = 0; index < 2; index++) send_header(followers[index], COMMIT, committed);
            deliver(&replica, committed);
        }
    }
}

static void follow(const char *folder, int number, int leader, int subscriber) {
    struct replica replica = open_replica(folder, number, subscriber);
    struct input *input = calloc(1, sizeof *input);
    uint64_t last = 0, committed = 0;
    for (input->fd = leader; !input->is_over;) {
        fill(input);
        for (struct header *header; (header = take_header(input));) {
            if (header->kind == COMMIT)
                committed = header->number;
            else
                memcpy(held(&replica, last = header->number), header + 1, burst_bytes);
        }
        if (last > replica.durable) {
            persist(&replica, last);
            send_header(leader, ACK, last);
        }
        deliver(&replica, committed < replica.durable ? committed : replica.durable);
    }
}

/* Tells the parent how long each burst has taken. */
static void subscribe(int container, int result) {
    struct input *input = calloc(1, sizeof *input);
    for (input->fd = container; !input->is_over;) {
        fill(input);
        int64_t stamp_ns, now = now_ns();
        for (char *burst; (burst = take(input, burst_bytes));) {
            memcpy(&stamp_ns, burst, sizeof stamp_ns);
            stamp_ns = now - stamp_ns;
            if (write(result, &stamp_ns, sizeof stamp_ns) < 0) die("write");
        }
    }
}

static int is_child(void) {
    pid_t pid = fork();
    if (pid < 0) die("fork");
    return pid == 0;
}

static void keep(const int *fds, int count) {
    for (int fd = 3; fd < 64; fd++) {
        int is_kept = 0;
        for (int index = 0; index < count; index++) is_kept |= fds[index] == fd;
        if (!is_kept) close(fd);
    }
}

static int by_size(const void *one, const void *other) {
    int64_t left = *(const int64_t *)one, right = *(const int64_t *)other;
    return (left > right) - (left < right);
}

static void report(int result) {
    size_t count = 0, room = 1 << 16;
    int64_t *delays = malloc(room * sizeof *delays);
    while (delays && read(result, delays + count, sizeof *delays) == sizeof *delays)
        if (++count == room) delays = realloc(delays, (room *= 2) * sizeof *delays);
    if (!delays || !count) die("nothing was delivered");
    qsort(delays, count, sizeof *delays, by_size);
    printf("%.1f %.1f %.1f\n", delays[count / 2] / 1e3, delays[count * 99 / 100] / 1e3,
           delays[count - 1] / 1e3);
}

int main(int argc, char **argv) {
    int published[2], followed[2][2], subscribed[3][2], results[2];
    if (argc != 5 || !(burst_bytes = atoi(argv[2])) || burst_bytes < 8 || burst_bytes > BURST_BYTES_MAX) {
        fprintf(stderr, "usage: quorum FOLDER BURST_BYTES BURSTS_PER_S SECONDS\n");
        return 2;
    }
    join(published);
    for (int index = 0; index < 2; index++) join(followed[index]);
    for (int index = 0; index < 3; index++) join(subscribed[index]);
    if (pipe(results)) die("pipe");
    for (int index = 0; index < 3; index++)
        if (is_child()) {
            keep((int[]){subscribed[index][1], results[1]}, 2);
            return subscribe(subscribed[index][1], results[1]), 0;
        }
    for (int index = 0; index < 2; index++)
        if (is_child()) {
            keep((int[]){followed[index][1], subscribed[index + 1][0]}, 2);
            return follow(argv[1], index + 1, followed[index][1], subscribed[index + 1][0]), 0;
        }
    if (is_child()) {
        keep((int[]){published[1], followed[0][0], followed[1][0], subscribed[0][0]}, 4);
        return lead(argv[1], published[1], (int[]){followed[0][0], followed[1][0]}, subscribed[0][0]), 0;
    }
    if (is_child()) {
        keep((int[]){published[0]}, 1);
        sleep(1); /* while the others fill their files */
        return publish(published[0], atoi(argv[3]), atoi(argv[4])), 0;
    }
    keep((int[]){results[0]}, 1);
    report(results[0]);
    while (wait(NULL) > 0) continue;
    return 0;
}
