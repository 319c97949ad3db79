// Reads a QR code with the camera, on this device.

import { useEffect, useRef, useState } from "preact/hooks";

import { texts } from "../../texts.ts";
import { Problem } from "../parts.tsx";

/** Looks for a code this often. */
const LOOK_MILLIS = 250;

/** Shows the camera until `found` takes a text. */
export function Scanner({ found, close }: { found: (text: string) => boolean; close: () => void }) {
  const video = useRef<HTMLVideoElement>(null);
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    const stop = new AbortController();
    const screen = video.current;
    if (screen !== null)
      scan(screen, found, stop.signal).then(
        (isFound) => isFound && close(),
        () => setFailed(true),
      );
    return () => stop.abort();
  }, []);
  return (
    <div class="scanner">
      {hasFailed ? <Problem text={texts.scanFailed} /> : <p>{texts.scanning}</p>}
      <video ref={video} playsInline muted hidden={hasFailed} />
      <button type="button" class="button quiet" onClick={close}>
        {texts.cancel}
      </button>
    </div>
  );
}

async function scan(video: HTMLVideoElement, found: (text: string) => boolean, signal: AbortSignal): Promise<boolean> {
  const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false });
  try {
    // Only whoever scans needs the decoder.
    const { default: decodeQR } = await import("qr/decode.js");
    video.srcObject = stream;
    await video.play();
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("2d", { willReadFrequently: true });
    while (!signal.aborted && context !== null) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MILLIS));
      [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
      if (canvas.width === 0) continue;
      context.drawImage(video, 0, 0);
      const text = decoded(() => decodeQR(context.getImageData(0, 0, canvas.width, canvas.height)));
      if (text !== undefined && !signal.aborted && found(text)) return true;
    }
    return false;
  } finally {
    for (const track of stream.getTracks()) track.stop();
  }
}

/** What stands in a picture; most pictures have no code. */
function decoded(decode: () => string): string | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
