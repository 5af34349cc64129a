// Runs models with ONNX Runtime Web. Arguments: its file, the provider, and the file of the package that gives Node a graphics
// card, where one is needed. A line of output tells that it is ready; then each line of input names the
// folder of a request, and is answered by what went wrong, or "".
const fs = require("fs"), { pathToFileURL } = require("url");
const [entry, provider, graphics] = process.argv.slice(2), end = () => process.kill(process.pid, "SIGKILL");
const arrays = { float32: Float32Array, float64: Float64Array, float16: Uint16Array, int8: Int8Array, uint8: Uint8Array,
  int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array,
  uint64: BigUint64Array, bool: Uint8Array };
console.log = console.info = console.debug = console.error;
const saidBy = (error) => String(error && error.message || error) || "an error without words";
async function graphicsCard() {
  const { create, globals } = await import(pathToFileURL(graphics));
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis, "navigator", { value: { gpu: create([]) }, configurable: true });
  if (!await navigator.gpu.requestAdapter()) throw new Error("There is no driver of Vulkan, Metal or Direct3D.");
  // Node's binding takes no memory that threads share.
  const write = GPUQueue.prototype.writeBuffer;
  GPUQueue.prototype.writeBuffer = function (buffer, offset, data, ...rest) {
    const own = data.buffer instanceof SharedArrayBuffer ? new Uint8Array(data) : data;
    return write.call(this, buffer, offset, own, ...rest);
  };
  // It looks for what the card is done with only while something else happens.
  setInterval(() => {}, 1);
}
async function runIn(ort, folder) {
  const session = await ort.InferenceSession.create(
    new Uint8Array(fs.readFileSync(folder + "model.onnx")), { executionProviders: [provider] });
  try {
    const feeds = {};
    for (const [number, { name, type, dims }] of JSON.parse(fs.readFileSync(folder + "feeds.json")).entries()) {
      const bytes = new Uint8Array(fs.readFileSync(folder + "feed" + number));
      feeds[name] = new ort.Tensor(type, new arrays[type](bytes.buffer), dims);
    }
    const results = await session.run(feeds), told = [];
    for (const [number, name] of session.outputNames.entries()) {
      const { type, dims, data } = results[name];
      fs.writeFileSync(folder + "result" + number, Buffer.from(data.buffer, data.byteOffset, data.byteLength));
      told.push({ type, dims });
    }
    fs.writeFileSync(folder + "results.json", JSON.stringify(told));
  } finally { await session.release(); }
}
(async () => {
  if (graphics) await graphicsCard();
  const loaded = await import(pathToFileURL(entry)), ort = loaded.InferenceSession ? loaded : loaded.default;
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  fs.writeSync(1, '""\n');
  for await (const folder of require("readline").createInterface({ input: process.stdin })) {
    const words = await runIn(ort, folder + "/").then(() => "", saidBy);
    fs.writeSync(1, JSON.stringify(words) + "\n");
  }
  end();
})().catch((error) => { console.error(saidBy(error)); end(); });
