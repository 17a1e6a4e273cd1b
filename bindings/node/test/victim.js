// A test process that is killed, or forgets to stop what it started: `victim.js sleep|forget`.
import * as kafkascope from "../src/index.js";
import { SAMPLE } from "./kit.js";

const served = await kafkascope.serve(SAMPLE);
const proxy = await kafkascope.proxy(served.bootstrap, { keep: "never" });
const { pid } = await proxy.ask("status");
console.log(`pid ${pid}`);
if (process.argv[2] === "sleep") setInterval(() => {}, 1000);
