"""Three primaries and three replicas on the loopback: spread, resharded, promoted."""

import threading
import time

import redis

from conftest import call, digest, refused, synced

SLOTS = 16384
# One secret for all nodes, so that filters merge wherever they were made.
OPTIONS = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--bf.secret", "5" * 32]


def wait_for(what, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if what():
                return
        except redis.RedisError:
            pass
        time.sleep(0.05)
    raise TimeoutError


def node_id(client):
    return client.execute_command("CLUSTER MYID").decode()


def test_filters_are_spread_resharded_live_and_promoted(start):
    nodes = [start(*OPTIONS) for _ in range(6)]
    clients = [node.client() for node in nodes]
    for number, client in enumerate(clients[:3]):
        first, last = SLOTS * number // 3, SLOTS * (number + 1) // 3 - 1
        client.execute_command("CLUSTER ADDSLOTSRANGE", first, last)
        client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
    for node in nodes[1:]:
        clients[0].execute_command("CLUSTER MEET", "127.0.0.1", node.port)

    def all_say(field, value):
        return all(c.execute_command("CLUSTER INFO")[field] == value for c in clients)

    wait_for(lambda: all_say("cluster_known_nodes", "6"))
    for number, client in enumerate(clients[3:]):
        client.execute_command("CLUSTER REPLICATE", node_id(clients[number]))
    wait_for(lambda: all_say("cluster_state", "ok"))
    wait_for(lambda: all(c.info("replication")["master_link_status"] == "up" for c in clients[3:]))

    cluster = redis.RedisCluster(host="127.0.0.1", port=nodes[0].port)
    model, stop, failures = {}, threading.Event(), []

    def write(number):
        mine = redis.RedisCluster(host="127.0.0.1", port=nodes[number % 3].port)
        i = 0
        while not stop.is_set():
            key, item = f"{'bf' if i % 2 else 'cf'}{number}-{i % 40}", f"item-{i}"
            try:
                verb = "BF.ADD" if i % 2 else "CF.ADD"
                mine.execute_command(verb, key, item)
                model.setdefault(key, []).append(item)
            except redis.RedisError as error:
                failures.append(error)
            i += 1

    def check():
        for key, items in list(model.items()):
            items = list(items)
            assert all(cluster.execute_command("BF.MEXISTS", key, *items)), key

    writers = [threading.Thread(target=write, args=[number]) for number in range(2)]
    for writer in writers:
        writer.start()
    time.sleep(1)
    owned = [len(client.keys()) for client in clients[:3]]
    assert all(owned), "every node has filters"
    # Every slot of the first node that has keys goes to the second, while writers write.
    source, target, ids = clients[0], clients[1], [node_id(client) for client in clients[:3]]
    slots = sorted({source.execute_command("CLUSTER KEYSLOT", key) for key in source.keys()})
    for slot in slots[:25]:
        target.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[0])
        source.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[1])
        while keys := source.execute_command("CLUSTER GETKEYSINSLOT", slot, 10):
            source.execute_command(
                "MIGRATE", "127.0.0.1", nodes[1].port, "", 0, 10_000, "KEYS", *keys
            )
        for client in target, source, clients[2]:
            client.execute_command("CLUSTER SETSLOT", slot, "NODE", ids[1])
    assert len(slots) >= 10
    check()
    # The replica of the second node takes over from it.
    clients[4].execute_command("CLUSTER FAILOVER")
    wait_for(lambda: clients[4].info("replication")["role"] == "master")
    wait_for(lambda: clients[1].info("replication")["role"] == "slave")
    time.sleep(0.5)
    stop.set()
    for writer in writers:
        writer.join()
    check()
    assert sum(map(len, model.values())) > 500
    wait_for(lambda: clients[1].info("replication")["master_link_status"] == "up")
    synced(clients[4], clients[1])
    assert digest(clients[4]) == digest(clients[1])
    # Keys of one hash tag merge; of two slots they do not.
    cluster.execute_command("BF.ADD", "{tag}a", "x")
    cluster.execute_command("BF.ADD", "{tag}b", "y")
    node = cluster.get_node_from_key("{tag}a")
    direct = redis.Redis(host=node.host, port=node.port)
    assert call(direct, "TAMIS.MERGE {tag}c {tag}a {tag}b") == b"OK"
    assert call(direct, "BF.MEXISTS {tag}c x y z") == [1, 1, 0]
    assert "same slot" in refused(direct, "TAMIS.MERGE {tag}c other third")
