"""Explains error codes: what they mean to people, and their usual causes.

Names, retriability and first releases are in `codes`; here are only words.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Help(NamedTuple):
    """An error code explained."""

    meaning: str
    """Meaning of the error."""
    causes: tuple[str, ...] = ()
    """Usual causes, most frequent first, each with where to look."""


HELP: Final[dict[int, Help]] = {
    -1: Help(
        "The broker failed in a way that it has no code for.",
        (
            "an exception on the broker: its log has the stack trace at this time",
            "a request that the broker did not expect in its present state",
        ),
    ),
    0: Help("No error."),
    1: Help(
        "The offset asked for is outside of what the partition still holds.",
        (
            "the consumer was away longer than the topic's retention, and its data was deleted",
            "the leader changed uncleanly and its log ends earlier",
            "the topic was deleted and created again; auto.offset.reset decides what follows",
        ),
    ),
    2: Help(
        "A record batch failed its checksum, or is not built as it must be.",
        (
            "bytes damaged on the way or on disk",
            "a record without a key for a compacted topic (old brokers say it with this code)",
            "a client that computes CRCs or compression frames wrongly",
        ),
    ),
    3: Help(
        "This broker knows no such topic or partition.",
        (
            "a misspelt topic, or one that does not exist and is not created automatically",
            "the topic is so new, or the broker so freshly started, that metadata is still under"
            " way",
            "the principal may not describe the topic: it is then hidden behind this code",
        ),
    ),
    4: Help("The fetch size is not valid.", ("a negative or zero size from the client",)),
    5: Help(
        "The partition has no leader at this moment.",
        (
            "an election is under way, usually for less than a second",
            "all in-sync replicas are down, so no leader may be elected",
            "the topic was created a moment ago",
        ),
    ),
    6: Help(
        "This broker does not lead the partition, or is no replica of it.",
        (
            "the leader moved and the client still has old metadata: it must refresh",
            "a rolling restart, a reassignment or a preferred leader election",
            "when it goes on: a client that never refreshes its metadata, or asks the wrong broker",
        ),
    ),
    7: Help(
        "The request was not done within the time that it allowed.",
        (
            "acks=all and a follower that is slow: look at replication and the in-sync set",
            "the controller is busy or just changed",
            "a broker whose disk or request threads are overloaded",
        ),
    ),
    8: Help("The broker is not there.", ("a tool asked for a broker that is down",)),
    9: Help(
        "The replica is not there on this broker.",
        (
            "a reassignment or move between log directories is under way",
            "consumers that read from a follower which has lost the partition",
        ),
    ),
    10: Help(
        "A record batch is larger than the topic or broker takes.",
        (
            "max.request.size of the producer above message.max.bytes or max.message.bytes",
            "a batch that grew because the broker's compression differs from the producer's",
            "one record that is too large by itself",
        ),
    ),
    11: Help(
        "The request comes from a controller that has been replaced.",
        ("two brokers took themselves for the controller for a short while",),
    ),
    12: Help(
        "The metadata text of a committed offset is too long.",
        ("above offset.metadata.max.bytes (4096 by default)",),
    ),
    13: Help(
        "The connection ended before the answer came. Clients make this code up themselves.",
        ("a broker that restarted", "an idle connection that somebody on the way cut"),
    ),
    14: Help(
        "The coordinator is still loading its state.",
        (
            "it just took over partitions of __consumer_offsets or __transaction_state",
            "when it lasts: an internal topic that is large because it is not compacted",
        ),
    ),
    15: Help(
        "There is no coordinator for the group or transactional id now.",
        (
            "__consumer_offsets or __transaction_state is being created, or has no leader",
            "its replication factor is higher than the number of brokers",
        ),
    ),
    16: Help(
        "This broker does not coordinate the group or transactional id.",
        (
            "the coordinator moved: the client must ask for it again",
            "when it goes on: a client or proxy that keeps talking to the old one",
        ),
    ),
    17: Help(
        "The topic's name is not allowed, or the operation is not for such a topic.",
        (
            "characters other than letters, digits, '.', '_' and '-', or more than 249 of them",
            "an attempt to write to an internal topic",
        ),
    ),
    18: Help(
        "The batch is larger than a segment of the log.",
        ("segment.bytes of the topic below the size of the batch",),
    ),
    19: Help(
        "Fewer replicas are in sync than min.insync.replicas asks for; nothing was written.",
        (
            "followers are down or have fallen behind",
            "min.insync.replicas equal to the replication factor: no broker may be away",
        ),
    ),
    20: Help(
        "The batch was written, but then fewer replicas were in sync than asked for.",
        (
            "a follower was lost between the write and its acknowledgement",
            "a retry writes the batch again unless the producer is idempotent",
        ),
    ),
    21: Help(
        "The value of acks is none of 0, 1 and -1 (all).", ("a client's setting of acks=2 or more",)
    ),
    22: Help(
        "The member speaks for a generation of the group that has passed.",
        (
            "the member was thrown out (no heartbeat within session.timeout.ms, or no poll within"
            " max.poll.interval.ms) and the others went on without it",
            "an offset commit that comes after a rebalance",
        ),
    ),
    23: Help(
        "The member's assignors or protocol type do not fit those of the group.",
        (
            "members with different partition.assignment.strategy, without one in common",
            "a consumer and a Connect worker with the same group id",
            "a rolling upgrade that changed the assignor in one step instead of two",
        ),
    ),
    24: Help("The group id is not valid.", ("an empty group.id where one is needed",)),
    25: Help(
        "The coordinator does not know this member.",
        (
            "the member was removed: no heartbeat in time, or processing between polls took too"
            " long",
            "the coordinator lost the group's state, or the group was deleted",
            "it asks to join again with an empty member id; it does harm only when it goes on",
        ),
    ),
    26: Help(
        "The session timeout is outside of what the broker allows.",
        ("compare session.timeout.ms with group.min and group.max.session.timeout.ms",),
    ),
    27: Help(
        "The group is rebalancing: the member must join again.",
        (
            "a member came, left or was thrown out; subscriptions or partition counts changed",
            "normal in heartbeats; in offset commits it means that the work may be done twice",
        ),
    ),
    28: Help("The offsets to commit are too large together.", ("very long metadata texts",)),
    29: Help(
        "The principal may not do this with the topic.",
        ("an ACL is missing: Read for fetching, Write for producing, Describe for metadata",),
    ),
    30: Help(
        "The principal may not use the group.",
        ("an ACL is missing: Read on the group, for consumers; mind prefixed ACLs",),
    ),
    31: Help(
        "The principal may not do this with the cluster.",
        (
            "an ACL on the cluster is missing: Alter, AlterConfigs, Create, ClusterAction",
            "an idempotent producer on brokers before 2.8 without IdempotentWrite",
        ),
    ),
    32: Help(
        "A record's timestamp is outside of the bounds of the topic.",
        (
            "a clock that is wrong, or seconds instead of milliseconds",
            "message.timestamp.before.max.ms, after.max.ms or difference.max.ms",
        ),
    ),
    33: Help(
        "The broker does not offer this SASL mechanism on this listener.",
        ("sasl.mechanism of the client is not among sasl.enabled.mechanisms",),
    ),
    34: Help(
        "A request came at the wrong point of the authentication.",
        (
            "a client that sends requests before it has authenticated",
            "a listener with SASL, and a client that is set up without",
        ),
    ),
    35: Help(
        "The broker does not speak this version of the request.",
        (
            "a client newer than the broker asks for ApiVersions: it then falls back (KIP-511)",
            "a client that does not ask what the broker speaks, or a broker that was downgraded",
            "the feature or metadata version of the cluster is too low for what is asked",
        ),
    ),
    36: Help(
        "A topic of that name is there already.",
        ("two clients created it at once; usually it may be ignored",),
    ),
    37: Help(
        "The number of partitions is not valid.",
        ("fewer partitions than the topic has; zero or a negative number",),
    ),
    38: Help(
        "The replication factor is not valid.",
        ("more replicas than brokers that are up; zero or a negative number",),
    ),
    39: Help(
        "The assignment of replicas is not valid.",
        ("a broker twice or unknown, lists of different lengths, partitions that leave gaps",),
    ),
    40: Help(
        "A configuration is not valid.",
        ("a name or value that the broker does not take; its error message names it",),
    ),
    41: Help(
        "This broker is not the controller.",
        ("the controller moved: the client must refresh its metadata and ask the new one",),
    ),
    42: Help(
        "The request contradicts itself or the broker's state.",
        ("a client's mistake; the error message and the broker's log name it",),
    ),
    43: Help(
        "The log's message format is too old for this.",
        ("headers, transactions or idempotence with message.format.version below 0.11",),
    ),
    44: Help(
        "A policy of the cluster forbids it.",
        ("create.topic.policy or alter.config.policy; many hosted clusters have one",),
    ),
    45: Help(
        "The sequence number does not follow the one before: batches are missing.",
        (
            "an earlier batch was given up while later ones were already sent",
            "the log was cut after an unclean leader election",
            "a client that numbers retries anew",
        ),
    ),
    46: Help(
        "A batch with this sequence number was written already.",
        ("a retry of a batch whose answer was lost; clients take it for success",),
    ),
    47: Help(
        "The producer's epoch is older than the one that the broker knows.",
        (
            "another producer with the same transactional.id started: this one is fenced",
            "the transaction ran longer than transaction.timeout.ms, and the coordinator ended it",
        ),
    ),
    48: Help(
        "The transaction is in a state in which this cannot be done.",
        ("a commit of a transaction that is not open, or is being aborted",),
    ),
    49: Help(
        "The producer id does not belong to this transactional id.",
        (
            "the id expired after transactional.id.expiration.ms without use",
            "a client that mixes up two producers",
        ),
    ),
    50: Help(
        "The transaction timeout is longer than the broker allows.",
        ("transaction.timeout.ms of the client above transaction.max.timeout.ms",),
    ),
    51: Help(
        "The coordinator still completes this producer's last transaction.",
        (
            "the next transaction began before markers of the last were written: retry",
            "when it lasts: a partition without leader that a marker must go to",
        ),
    ),
    52: Help(
        "The transaction coordinator that writes markers has been replaced.",
        ("its partition of __transaction_state moved to another broker",),
    ),
    53: Help(
        "The principal may not use this transactional id.",
        ("an ACL is missing: Write on the transactional id",),
    ),
    54: Help(
        "The cluster has no authorizer, so there are no ACLs to speak of.",
        ("authorizer.class.name is not set",),
    ),
    55: Help(
        "This part was not tried because another part of the request failed.",
        ("look at the errors of the other partitions or topics",),
    ),
    56: Help(
        "The broker could not read or write its disk.",
        ("a log directory failed or is full: it is offline until the broker restarts",),
    ),
    57: Help(
        "The broker has no such log directory.",
        ("the path is not among log.dirs, or the directory is offline",),
    ),
    58: Help(
        "The credentials are wrong.",
        (
            "user or password; a SCRAM user that does not exist for this mechanism",
            "an OAuth token that has expired or is for another audience",
            "clocks that differ, with Kerberos",
        ),
    ),
    59: Help(
        "The broker knows nothing of this producer id any more.",
        (
            "all its records were deleted by retention, or producer.id.expiration.ms passed",
            "brokers before 2.4 with short retention; newer clients recover by themselves",
        ),
    ),
    60: Help(
        "A reassignment of partitions is under way already.",
        ("wait for it, or cancel it",),
    ),
    61: Help(
        "Delegation tokens are not enabled.",
        ("delegation.token.secret.key is not set on the brokers",),
    ),
    62: Help("There is no such delegation token.", ("expired and removed, or a wrong HMAC",)),
    63: Help(
        "The principal owns neither the token nor the right to renew it.",
        ("renewers were not given when the token was made",),
    ),
    64: Help(
        "Delegation tokens are not handed out on this kind of connection.",
        (
            "a connection without authentication, or with one-way TLS",
            "a connection that itself authenticated with a token",
        ),
    ),
    65: Help(
        "The principal may not do this with the delegation token.",
        ("an ACL is missing: Describe on the token, or CreateTokens for the user",),
    ),
    66: Help("The delegation token has expired.", ("it was not renewed in time",)),
    67: Help("The kind of principal is not known.", ("anything but User, as a rule",)),
    68: Help(
        "The group has members and so cannot be deleted or reset.",
        ("stop its consumers first, and wait for their session timeout",),
    ),
    69: Help(
        "There is no such group.",
        (
            "a misspelt group id, or one whose offsets expired (offsets.retention.minutes)",
            "a member of the new protocol that was removed; it joins again",
        ),
    ),
    70: Help(
        "The broker has forgotten the fetch session.",
        (
            "its cache of sessions is full (max.incremental.fetch.session.cache.slots)",
            "the broker restarted; harmless: the client asks for a new session",
        ),
    ),
    71: Help(
        "The fetch session's epoch is not the one that the broker expects.",
        (
            "a response was lost and the request sent again",
            "two clients share a session id, or a proxy mixes up connections",
        ),
    ),
    72: Help(
        "The leader has no listener of the name that the client connected to.",
        ("listeners differ between brokers: advertised.listeners of the leader lacks one",),
    ),
    73: Help("Topics may not be deleted here.", ("delete.topic.enable=false",)),
    74: Help(
        "The client's leader epoch is older than the broker's.",
        ("the leader changed and the client has not heard of it: it refreshes its metadata",),
    ),
    75: Help(
        "The client's leader epoch is newer than the broker's.",
        ("the client heard of a new leader before this broker did: it retries",),
    ),
    76: Help(
        "The compression codec is not possible for this version.",
        ("zstd in a topic that is read with Fetch 9 or older, or written with Produce 6",),
    ),
    77: Help(
        "The broker's epoch is not its present one.",
        ("a request sent by a broker before it restarted or registered anew",),
    ),
    78: Help(
        "The leader cannot yet say which offsets are committed.",
        ("it was elected a moment ago and its high watermark has to catch up",),
    ),
    79: Help(
        "The member must join again with the id that is in this answer.",
        ("normal at the first JoinGroup of every dynamic member since version 4 (KIP-394)",),
    ),
    80: Help(
        "The preferred leader cannot take over.",
        ("it is down, or not in the in-sync set",),
    ),
    81: Help("The group has as many members as it may.", ("group.max.size",)),
    82: Help(
        "Another member with the same group.instance.id has taken this one's place.",
        (
            "two running consumers with one group.instance.id",
            "a restart that was so quick that the old process still lived",
        ),
    ),
    83: Help(
        "No replica may become leader.",
        ("all in-sync replicas are down; an unclean election would lose records",),
    ),
    84: Help("The leader is the right one already.", ("nothing to do",)),
    85: Help("No reassignment is under way for the partition.", ("it is done, or never began",)),
    86: Help(
        "The group's members are subscribed to the topic, so its offsets stay.",
        ("offsets of a topic can be deleted only when no member reads it",),
    ),
    87: Help(
        "A record breaks a rule of the topic or of the format.",
        (
            "no key in a compacted topic",
            "record_errors of the answer names the record in the batch",
            "a validation or schema plugin of the broker",
        ),
    ),
    88: Help(
        "Offsets of an open transaction cover this one; ask again.",
        (
            "a consumer that starts while the last transaction of its group is not decided",
            "when it lasts: a producer that hangs in its transaction",
        ),
    ),
    89: Help(
        "A quota is used up; throttle_time_ms says when to come back.",
        ("controller_mutation_rate: many topics or partitions made at once",),
    ),
    90: Help(
        "A newer producer with the same transactional id has taken over.",
        (
            "two instances with one transactional.id; after a restart the older one is to stop",
            "the coordinator ended a transaction that took too long",
        ),
    ),
    91: Help("What the request is about is not there.", ("a SCRAM user, quota or feature",)),
    92: Help(
        "The request names the same thing twice, or it is there already.",
        ("a user, quota or client entry given twice",),
    ),
    93: Help(
        "The credential is not acceptable.",
        ("too few SCRAM iterations (below 4096), too many, or no user name",),
    ),
    94: Help(
        "The voters of the metadata quorum do not agree with those of the sender.",
        ("controller.quorum.voters differs between nodes",),
    ),
    95: Help("The feature's version is not valid.", ("a downgrade without the flag for it",)),
    96: Help(
        "The features could not be changed.",
        ("a broker does not support the level; the error message names it",),
    ),
    97: Help(
        "The controller could not read the principal in a forwarded request.",
        ("a custom principal builder that is not the same on brokers and controllers",),
    ),
    98: Help(
        "The metadata snapshot asked for is not there.",
        ("a newer one has replaced it: the follower asks again",),
    ),
    99: Help("The position is behind the end of the snapshot.", ("a snapshot that was replaced",)),
    100: Help(
        "This broker knows no topic with this id.",
        (
            "the topic was deleted, or deleted and created again: the client must refresh",
            "metadata has not yet arrived at this broker",
        ),
    ),
    101: Help(
        "A broker with this node.id is registered and running.",
        (
            "two brokers with one node.id",
            "a restart before the session of the last run was over: it passes by itself",
        ),
    ),
    102: Help("No broker with this id is registered.", ("its registration was removed",)),
    103: Help(
        "The topic's id is not the one that the broker has in its log.",
        ("the topic was deleted and created again while a client or follower held the old id",),
    ),
    104: Help(
        "The node belongs to another cluster.",
        ("a data directory formatted with another cluster id; a wrong address",),
    ),
    105: Help("There is no such transactional id.", ("expired, or never used on this cluster",)),
    106: Help(
        "The fetch session mixes topic ids and topic names.",
        ("the client's or broker's version changed within a session: it starts a new one",),
    ),
    107: Help(
        "The replica may not join the in-sync set.",
        ("its broker is fenced, shutting down, or registered anew since",),
    ),
    108: Help(
        "The change led to the election of another leader.",
        ("the sender is not the leader any more",),
    ),
    109: Help(
        "The offset is in tiered storage, no longer on the broker's disk.",
        ("a follower that starts from nothing: it goes on from the local log's start",),
    ),
    110: Help(
        "The coordinator has fenced this epoch of the member (new group protocol).",
        (
            "the member was thrown out or lags by more than one epoch: it gives up its partitions"
            " and joins again",
        ),
    ),
    111: Help(
        "The group.instance.id still belongs to a running member.",
        ("two consumers with one group.instance.id; or the old one has not left yet",),
    ),
    112: Help(
        "The coordinator does not have this server-side assignor.",
        ("group.remote.assignor of the client is not among the broker's assignors",),
    ),
    113: Help(
        "The member's epoch is not the newest (new group protocol).",
        ("a commit during a change of assignment: the client retries with the new epoch",),
    ),
    114: Help(
        "The request went to the other kind of node.",
        ("a controller's address in bootstrap.servers, or a broker's in bootstrap.controllers",),
    ),
    115: Help("The node does not have this kind of endpoint.", ("an admin client newer than it",)),
    116: Help("This controller id is not known.", ("the quorum changed meanwhile",)),
    117: Help(
        "The telemetry subscription is not the present one.",
        ("the subscription changed: the client fetches it again; harmless",),
    ),
    118: Help("The metrics are more than the broker takes.", ("telemetry.max.bytes",)),
    119: Help(
        "The broker's registration is not valid.",
        ("wrong directories, listeners or migration state; the controller's log names it",),
    ),
    120: Help(
        "The transaction can only be aborted; the producer itself may go on.",
        ("a write whose transaction the coordinator could not verify",),
    ),
    121: Help(
        "The records are not in a state for this acknowledgement.",
        ("the acquisition lock ran out, and the records went to another consumer",),
    ),
    122: Help(
        "The broker has forgotten the share session.",
        ("it was evicted, or the connection broke: the client opens a new one",),
    ),
    123: Help(
        "The share session's epoch is not the one expected.",
        ("a response was lost and the request sent again: the client opens a new session",),
    ),
    124: Help(
        "The share coordinator has seen a newer epoch of this state.",
        ("the leader of the partition moved, and the old one still writes",),
    ),
    125: Help("The voter's key does not fit the receiver.", ("a wrong node or directory id",)),
    126: Help("The voter is in the quorum already.", ("add-controller was run twice",)),
    127: Help("The voter is not in the quorum.", ("a wrong id, or it was removed already",)),
    128: Help(
        "The regular expression of the subscription is not valid.",
        ("brokers take RE2 syntax: no look-around and no back references",),
    ),
    129: Help(
        "The client must start again from its bootstrap servers (KIP-1102).",
        ("it talks to another cluster than it began with, or a proxy moved it",),
    ),
    130: Help(
        "The topology of the streams application is not valid.",
        ("source topics that do not fit, or a subtopology that refers to nothing",),
    ),
    131: Help(
        "The topology's epoch is not the one of the group.",
        ("members with different versions of the application",),
    ),
    132: Help(
        "Another topology has taken over in this group.",
        ("a rolling upgrade that changes the topology",),
    ),
    133: Help(
        "The broker keeps as many share sessions as it may.",
        ("group.share.max.share.sessions; or clients that open sessions and leave them",),
    ),
    134: Help("The group could not be deleted.", ("the error message and broker log say why",)),
    135: Help(
        "The description of the streams topology could not be stored.",
        ("it is only for display; the group works all the same",),
    ),
    136: Help("No controller with this id is registered.", ("a wrong id, or already removed",)),
}
"""Help by error code."""


def help_of(code: int) -> Help:
    """Return the help for a code; for one that no release has, a sentence that says so."""
    return HELP.get(code) or Help(
        "No Kafka release up to the newest that we know has this code.",
        ("a newer broker, another product that speaks the protocol, or damaged bytes",),
    )
