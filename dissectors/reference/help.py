"""Explains error codes: what they mean to people, and their usual causes.

Names, retriability and first releases are in `codes`; here are only words.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Help(NamedTuple):
    """An error code explained."""

    meaning: str
    causes: tuple[str, ...] = ()
    """Usual causes, most frequent first, each with where to look."""


_TEXT: Final = """
-1 The broker failed with an error that has no code of its own.
- an exception on the broker: its log has the stack trace at this time
- a request that is unexpected in the broker's current state
0 No error.
1 The requested offset is outside the range that the partition holds.
- the consumer was away longer than the topic's retention time, and the records were deleted
- an unclean leader election: the log of the new leader ends earlier
- the topic was deleted and created again; auto.offset.reset decides where to continue
2 A record batch has a wrong checksum or an invalid structure.
- bytes corrupted in transit or on disk
- a record without a key for a compacted topic (old brokers use this code for it)
- a client that computes CRCs or compression frames wrongly
3 This broker does not know the topic or partition.
- a misspelled topic, or one that does not exist and is not created automatically
- a new topic, or a restarted broker that does not have the metadata yet
- a missing ACL: without Describe the broker hides the topic behind this code
4 The fetch size is invalid.
- a negative or zero size from the client
5 The partition currently has no leader.
- an election in progress, usually for less than a second
- all in-sync replicas are down, so no leader can be elected
- the topic was created a moment ago
6 This broker is not the leader of the partition, or not a replica of it.
- the leader moved and the client has stale metadata: it must refresh
- a rolling restart, a reassignment or a preferred leader election
- if it persists: a client that never refreshes its metadata, or uses the wrong broker
7 The request was not completed within its timeout.
- acks=all and a slow follower: check replication and the ISR
- a busy controller, or a controller change
- a broker whose disk or request threads are overloaded
8 The broker is not available.
- a request about a broker that is down
9 The replica is not available on this broker.
- a reassignment, or a move between log directories, in progress
- consumers that read from a follower that no longer has the partition
10 A record batch is larger than the topic or broker allows.
- max.request.size of the producer above message.max.bytes or max.message.bytes
- a batch that grew because the broker's compression differs from the producer's
- a single record above the limit
11 The request comes from a former controller.
- two brokers acted as the controller for a short time
12 The metadata text of a committed offset is too long.
- metadata above offset.metadata.max.bytes (4096 by default)
13 The connection closed before the response arrived. Clients raise it; brokers never send it.
- a broker that restarted
- a firewall or load balancer that dropped an idle connection
14 The coordinator is still loading its state.
- it just took over partitions of __consumer_offsets or __transaction_state
- if it persists: an internal topic that is large because it is not compacted
15 The coordinator of the group or transactional.id is not available.
- __consumer_offsets or __transaction_state is being created, or has no leader
- its replication factor is higher than the number of brokers
16 This broker is not the coordinator of the group or transactional.id.
- the coordinator moved: the client must look it up again
- if it persists: a client or proxy that keeps using the old coordinator
17 The topic name is invalid, or the operation is not allowed on this topic.
- characters other than letters, digits, '.', '_' and '-', or more than 249 of them
- an attempt to write to an internal topic
18 The batch is larger than a segment of the log.
- segment.bytes of the topic below the size of the batch
19 Fewer replicas are in sync than min.insync.replicas requires; nothing was written.
- followers are down or have fallen behind
- min.insync.replicas equal to the replication factor: no broker may be down
20 The batch was written, but too few replicas were in sync afterwards.
- a follower was lost between the write and its acknowledgement
- a retry writes the batch again unless the producer is idempotent
21 The value of acks is none of 0, 1 and -1 (all).
- acks set to 2 or more in the client
22 The member uses an old generation of the group.
- the member was evicted (no heartbeat within session.timeout.ms, or no poll within
  max.poll.interval.ms) and the group rebalanced
- an offset commit sent after a rebalance
23 The member's assignors or protocol type do not match those of the group.
- members without a common partition.assignment.strategy
- a consumer and a Connect worker with the same group id
- a rolling upgrade that changed the assignor in one step instead of two
24 The group.id is invalid.
- an empty group.id where one is required
25 The coordinator does not know this member.
- the member was evicted: no heartbeat in time, or processing between polls took too long
- the coordinator lost the group's state, or the group was deleted
- the client then rejoins with an empty member id; a problem only if it persists
26 The session timeout is outside the range that the broker allows.
- session.timeout.ms below group.min.session.timeout.ms or above group.max.session.timeout.ms
27 The group is rebalancing: the member must rejoin.
- a member joined, left or was evicted; subscriptions or partition counts changed
- normal in heartbeats; in offset commits, records may be processed twice
28 The offsets and metadata to commit are too large in total.
- very long metadata texts
29 The principal is not authorized for this operation on the topic.
- a missing ACL: Read for fetching, Write for producing, Describe for metadata
30 The principal is not authorized to use the group.
- a missing ACL: Read on the group, for consumers; check prefixed ACLs
31 The principal is not authorized for this operation on the cluster.
- a missing ACL on the cluster: Alter, AlterConfigs, Create, ClusterAction
- an idempotent producer on brokers before 2.8 without IdempotentWrite
32 A record's timestamp is outside the range that the topic allows.
- a wrong clock, or timestamps in seconds instead of milliseconds
- message.timestamp.before.max.ms, message.timestamp.after.max.ms or (before 3.6)
  message.timestamp.difference.max.ms too small
33 The broker does not offer this SASL mechanism on this listener.
- sasl.mechanism of the client is not among sasl.enabled.mechanisms
34 The request is not valid in the current state of the authentication.
- a client that sends requests before it has authenticated
- a SASL listener, and a client configured without SASL
35 The broker does not support this version of the request.
- a client newer than the broker sends ApiVersions: it then falls back (KIP-511)
- a client without version negotiation, or a broker that was downgraded
- the feature or metadata version of the cluster is too low for the request
36 A topic with this name already exists.
- two clients created it at the same time; usually harmless
37 The number of partitions is invalid.
- fewer partitions than the topic has; zero or a negative number
38 The replication factor is invalid.
- more replicas than running brokers; zero or a negative number
39 The replica assignment is invalid.
- a duplicate or unknown broker, lists of different lengths, gaps in the partition numbers
40 A configuration is invalid.
- a name or value that the broker does not accept; its error message names it
41 This broker is not the controller.
- the controller moved: the client must refresh its metadata and use the new one
42 The request contradicts itself or the broker's state.
- a client error; the error message and the broker's log have the details
43 The log's message format is too old for the request.
- headers, transactions or idempotence with message.format.version below 0.11
44 A policy of the cluster forbids the request.
- create.topic.policy.class.name or alter.config.policy.class.name; many hosted clusters set one
45 The sequence number does not follow the one before: batches are missing.
- an earlier batch expired while later ones were already in flight
- the log was truncated after an unclean leader election
- a client that assigns new sequence numbers to retries
46 A batch with this sequence number was already written.
- a retry of a batch whose response was lost; clients treat it as success
47 The producer epoch is older than the current one.
- a newer producer with the same transactional.id has fenced this one
- the transaction ran longer than transaction.timeout.ms, and the coordinator aborted it
48 The operation is not valid in the current state of the transaction.
- a commit of a transaction that is not open, or is being aborted
49 The producer id does not belong to this transactional.id.
- the id expired after transactional.id.expiration.ms without use
- a client that mixes up two producers
50 The transaction timeout is longer than the broker allows.
- transaction.timeout.ms of the client above transaction.max.timeout.ms
51 The coordinator is still completing this producer's previous transaction.
- the next transaction started before all markers of the previous one were written: retry
- if it persists: a partition without a leader that needs a marker
52 The transaction coordinator that writes markers has been replaced.
- its partition of __transaction_state moved to another broker
53 The principal is not authorized to use this transactional.id.
- a missing ACL: Write on the transactional.id
54 The cluster has no authorizer, so it has no ACLs.
- authorizer.class.name is not set
55 This part was not attempted because another part of the request failed.
- see the errors of the other partitions or topics
56 The broker could not read or write its disk.
- a log directory failed or is full: it is offline until the broker restarts
57 The broker has no such log directory.
- the path is not among log.dirs, or the directory is offline
58 Authentication failed.
- wrong user or password; no SCRAM credentials of the user for this mechanism
- an OAuth token that has expired or is for another audience
- clock skew, with Kerberos
59 The broker no longer has any state of this producer id.
- all its records were deleted by retention, or producer.id.expiration.ms passed
- brokers before 2.4 with short retention; newer clients recover by themselves
60 A reassignment of partitions is already in progress.
- wait for it, or cancel it
61 Delegation tokens are not enabled.
- delegation.token.secret.key is not set on the brokers
62 The delegation token does not exist.
- expired and removed, or a wrong HMAC
63 The principal is neither owner nor renewer of the delegation token.
- no renewers were set when the token was created
64 Delegation tokens are not available on this kind of connection.
- a connection without authentication, or with one-way TLS
- a connection that itself authenticated with a token
65 The principal is not authorized for this operation on the delegation token.
- a missing ACL: Describe on the token, or CreateTokens for the user
66 The delegation token has expired.
- it was not renewed in time
67 The principal type is not supported.
- usually any type other than User
68 The group has members, so it cannot be deleted or reset.
- stop its consumers first, and wait for their session timeout
69 The group does not exist.
- a misspelled group.id, or one whose offsets expired (offsets.retention.minutes)
- an evicted member of the consumer protocol; it rejoins
70 The broker has forgotten the fetch session.
- its session cache is full (max.incremental.fetch.session.cache.slots)
- the broker restarted; harmless: the client opens a new session
71 The fetch session's epoch is not the one that the broker expects.
- a response was lost and the request sent again
- two clients share a session id, or a proxy mixes up connections
72 The leader has no listener with the name of the one that the client uses.
- listeners differ between brokers: advertised.listeners of the leader lacks one
73 Topic deletion is disabled.
- delete.topic.enable=false
74 The client's leader epoch is older than the broker's.
- the leader changed and the client has stale metadata: it refreshes
75 The client's leader epoch is newer than the broker's.
- the client learned of a new leader before this broker did: it retries
76 This version of the request does not support the compression codec.
- zstd in a topic that is read with Fetch 9 or older, or written with Produce 6
77 The broker epoch is stale.
- a request sent by a broker before it restarted or registered again
78 The leader does not have an up-to-date high watermark yet.
- it was elected a moment ago and its high watermark has to catch up
79 The member must rejoin with the member id of this response.
- normal at the first JoinGroup of every dynamic member since version 4 (KIP-394)
80 The preferred leader is not available.
- it is down, or not in the ISR
81 The group has reached its maximum size.
- more members than group.max.size
82 Another member with the same group.instance.id has replaced this one.
- two running consumers with one group.instance.id
- a restart while the old process was still running
83 No replica is eligible to become the leader.
- all in-sync replicas are down; an unclean election would lose records
84 The desired leader is already the leader.
- no action is needed
85 No reassignment of the partition is in progress.
- it has completed, or never started
86 The group is subscribed to the topic, so its offsets cannot be deleted.
- a member that still reads the topic
87 A record violates a rule of the topic or of the format.
- no key in a compacted topic
- record_errors of the response names the record in the batch
- a validation or schema plugin of the broker
88 The offset has a pending commit of an open transaction; retry.
- a consumer that starts before the last transaction of its group has completed
- if it persists: a producer with a hanging transaction
89 A quota is exceeded; throttle_time_ms is the time to wait.
- controller_mutation_rate: many topics or partitions created at once
90 A newer producer with the same transactional id has taken over.
- two instances with one transactional.id; after a restart the older one must stop
- the coordinator aborted a transaction that exceeded transaction.timeout.ms
91 The requested resource does not exist.
- a SCRAM user, quota or feature
92 The request names a resource twice, or the resource already exists.
- a duplicate user, quota or client entry
93 The SCRAM credential is not acceptable.
- too few SCRAM iterations (below 4096), too many, or no user name
94 The voters of the metadata quorum do not match those of the sender.
- controller.quorum.voters differs between nodes
95 The feature version is invalid.
- a downgrade without the flag for it
96 The features could not be changed.
- a broker does not support the level; the error message names it
97 The controller could not read the principal in a forwarded request.
- a custom principal builder that is not the same on brokers and controllers
98 The requested metadata snapshot does not exist.
- a newer one has replaced it: the follower requests that one
99 The position is beyond the end of the snapshot.
- a snapshot that was replaced
100 This broker does not know the topic id.
- the topic was deleted, or deleted and created again: the client must refresh
- the metadata has not reached this broker yet
101 A broker with this node.id is registered and running.
- two brokers with one node.id
- a restart before the previous session expired: it resolves by itself
102 No broker with this id is registered.
- its registration was removed
103 The topic id differs from the one in the broker's log.
- the topic was deleted and created again while a client or follower held the old id
104 The node belongs to another cluster.
- a data directory formatted with another cluster id; a wrong address
105 The transactional.id does not exist.
- expired, or never used on this cluster
106 The fetch session mixes topic ids and topic names.
- the client's or broker's version changed within a session: the client starts a new one
107 The replica is not eligible to join the ISR.
- its broker is fenced, shutting down, or has registered again
108 The change led to the election of another leader.
- the sender is no longer the leader
109 The offset is in tiered storage, no longer on the broker's disk.
- a follower without data: it continues at the local log start offset
110 The coordinator has fenced this epoch of the member (consumer protocol).
- the member was evicted, or is more than one epoch behind: it releases its partitions and rejoins
111 The group.instance.id belongs to another running member.
- two consumers with one group.instance.id; or the old one has not left yet
112 The coordinator does not have this server-side assignor.
- group.remote.assignor of the client is not among the broker's assignors
113 The member epoch is stale (consumer protocol).
- a commit during a change of assignment: the client retries with the new epoch
114 The request was sent to a broker instead of a controller, or vice versa.
- a controller's address in bootstrap.servers, or a broker's in bootstrap.controllers
115 The node does not support this endpoint type.
- an admin client newer than it
116 The controller id is unknown.
- the quorum has changed
117 The telemetry subscription is outdated.
- the subscription changed: the client fetches it again; harmless
118 The metrics are larger than the broker allows.
- metrics above telemetry.max.bytes
119 The broker registration is invalid.
- wrong directories, listeners or migration state; the controller's log names it
120 The transaction can only be aborted; the producer itself may continue.
- a write whose transaction the coordinator could not verify
121 The records are in a state that does not allow this acknowledgement.
- the acquisition lock expired, and another consumer acquired the records
122 The broker has forgotten the share session.
- it was evicted, or the connection broke: the client opens a new one
123 The share session epoch is not the one that the broker expects.
- a response was lost and the request sent again: the client opens a new session
124 The share coordinator has seen a newer epoch of this state.
- the leader of the partition moved, and the old one still writes
125 The voter key does not match the receiving node.
- a wrong node or directory id
126 The voter is already in the quorum.
- add-controller was run twice
127 The voter is not in the quorum.
- a wrong id, or a voter that was already removed
128 The regular expression of the subscription is invalid.
- brokers use RE2 syntax: no look-around and no back references
129 The client must rebootstrap from its bootstrap servers (KIP-1102).
- it reached another cluster than at its start, or a proxy redirected it
130 The topology of the streams application is invalid.
- source topics that do not match, or a subtopology with unresolved references
131 The topology epoch differs from the group's.
- members with different versions of the application
132 A newer topology of the group has fenced this one.
- a rolling upgrade that changes the topology
133 The broker has reached its limit of share sessions.
- group.share.max.share.sessions too low, or clients that leave sessions open
134 The deletion of the group failed.
- the error message and the broker's log have the reason
135 The description of the streams topology could not be stored.
- it is only for display; the group works without it
136 No controller with this id is registered.
- a wrong id, or already removed
"""
"""Codes with their meanings, and causes after a dash; lines that go on are indented."""


def _parsed(text: str) -> dict[int, Help]:
    found = {}
    for entry in re.split(r"\n(?=-?\d)", text.strip()):
        meaning, *causes = (" ".join(part.split()) for part in entry.split("\n- "))
        code, _, meaning = meaning.partition(" ")
        found[int(code)] = Help(meaning, tuple(causes))
    return found


HELP: Final = _parsed(_TEXT)


def help_of(code: int) -> Help:
    """Return the help for a code; for one that no release has, a sentence that says so."""
    return HELP.get(code) or Help(
        "No Kafka release that kafkascope knows has this code.",
        ("a newer broker, another product that speaks the protocol, or damaged bytes",),
    )
