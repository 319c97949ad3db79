// A push service on the loopback: npm's web-push-testing, which decrypts what it gets and checks who has sent it.
//
//   node tests/notifications/push_service.mjs    prints its address, and runs until its input ends
//
// Beside the calls of web-push-testing (`/subscribe`, `/get-notifications`, `/expire-subscription/…`) it has two: `/received`
// says what came, as it came, and `/open` opens a message with npm's http_ece. Packages are those of web/package-lock.json.

import { createECDH } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const ece = require("http_ece");
const { PushApiModel } = require("web-push-testing/src/PushApiModel.js");
const WebPushTestingServer = require("web-push-testing/src/server.js");

const model = new PushApiModel();
const service = new WebPushTestingServer(model, 0);
const received = [];

service._app.post("/received", (_, response) => response.send(received));
service._app.post("/open", ({ body: { privateKey, auth, body } }, response) => {
  const key = createECDH("prime256v1");
  key.setPrivateKey(Buffer.from(privateKey, "base64url"));
  const options = { version: "aes128gcm", privateKey: key, authSecret: Buffer.from(auth, "base64url") };
  response.send({ text: ece.decrypt(Buffer.from(body, "base64"), options).toString("utf8") });
});
service.setRequestHandlers();

const server = createServer((request, response) => {
  if (request.url.startsWith("/notify/")) {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    const { url, headers } = request;
    // Before its answer, and before the service changes the headers.
    const kept = { path: url, headers: { ...headers } };
    request.on("end", () => received.push({ ...kept, body: Buffer.concat(parts).toString("base64") }));
  }
  service._app(request, response);
});
// Its own start would listen on every address of the machine.
server.listen(0, "127.0.0.1", () => {
  const address = `http://127.0.0.1:${server.address().port}`;
  model.notifyUrl = `${address}/notify/`;
  console.log(address);
});
process.stdin.resume().on("end", () => process.exit(0));
