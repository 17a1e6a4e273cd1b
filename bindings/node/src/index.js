// Kafka traffic in tests: `proxy`, `within`, `serve`, `open`. index.d.ts says what each does.
import { Capture } from "./capture.js";

export { KafkascopeError, TrafficError } from "./errors.js";
export { proxy, within } from "./proxy.js";
export { serve } from "./serve.js";

/** The traffic of a capture that is there already. */
export function open(path, options = {}) {
  return new Capture(String(path), options);
}
