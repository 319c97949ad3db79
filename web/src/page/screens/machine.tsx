// The machine that a scanned code is of: why its key is known, and the proof.

import type { ComponentChildren } from "preact";

import { base64url, digits as digitsOf, type PairingLink, visibleCode } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { Icon } from "../icons.tsx";
import { Marked } from "../parts.tsx";

/** Says that the code came from the machine's own screen. */
export function FromItsScreen({ link }: { link: PairingLink }) {
  return (
    <div class="notice ok">
      <Icon name="shield" />
      <b>{texts.pairStraight}</b>
      <p class="soft">{texts.pairStraightText(visibleCode(link.enforcerId))}</p>
    </div>
  );
}

/** The relay and the key in a code, folded; `children` are further facts. */
export function CodeProof({ link, children }: { link: PairingLink; children?: ComponentChildren }) {
  const fingerprint = base64url.decode(link.fingerprint);
  return (
    <details class="card proof">
      <summary>
        <Icon name="shield" />
        <span class="grow">
          <strong>{texts.proofTitle}</strong>: {texts.pairProof}
        </span>
        <Icon name="right" />
      </summary>
      <dl class="facts">
        <div>
          <dt>{texts.relay}</dt>
          <dd>
            <Marked text={visibleCode(link.gateway)} />
          </dd>
        </div>
        {fingerprint === undefined ? null : (
          <div>
            <dt>{texts.factKey(visibleCode(link.enforcerId))}</dt>
            <dd>{digitsOf(fingerprint)}</dd>
          </div>
        )}
        {children}
      </dl>
    </details>
  );
}
