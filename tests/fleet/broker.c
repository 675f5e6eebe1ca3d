/* SPDX-License-Identifier: 0BSD */
/* broker PARTITIONS RECORDS: librdkafka's mock cluster, with a topic "commands"
 * that has RECORDS records, "c1" and so on, one partition after the other.
 * Prints where it listens, and runs until it is killed. */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void die(const char *why)
{
    fprintf(stderr, "broker: %s\n", why);
    exit(1);
}

int main(int argc, char **argv)
{
    char why[256], text[16];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *host, *producer;
    rd_kafka_mock_cluster_t *cluster;
    int partitions = argc == 3 ? atoi(argv[1]) : 0;
    int records = argc == 3 ? atoi(argv[2]) : 0;

    if (partitions < 1 || records < 1)
        die("PARTITIONS RECORDS");
    host = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why,
                        sizeof why);
    cluster = host ? rd_kafka_mock_cluster_new(host, 1) : NULL;
    if (!cluster)
        die("no mock cluster");
    rd_kafka_mock_topic_create(cluster, "commands", partitions, 1);
    rd_kafka_conf_set(conf, "bootstrap.servers",
                      rd_kafka_mock_cluster_bootstraps(cluster), why,
                      sizeof why);
    producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (!producer)
        die(why);
    for (int i = 1; i <= records; i++) {
        int len = snprintf(text, sizeof text, "c%d", i);
        if (rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("commands"),
                              RD_KAFKA_V_PARTITION(i % partitions),
                              RD_KAFKA_V_VALUE(text, (size_t)len),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                              RD_KAFKA_V_END) != RD_KAFKA_RESP_ERR_NO_ERROR)
            die("a record was refused");
    }
    if (rd_kafka_flush(producer, 10000) != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("records were not taken");
    puts(rd_kafka_mock_cluster_bootstraps(cluster));
    fflush(stdout);
    pause();
    return 0;
}
