/** kafkascope is not there, did not start, died, or refused what it was asked. */
export class KafkascopeError extends Error {
  name = "KafkascopeError";
}

/** Something that was to be true of the traffic is not. */
export class TrafficError extends Error {
  name = "TrafficError";
}
