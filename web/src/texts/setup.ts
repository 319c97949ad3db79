// The texts of joining, pairing, recovery and devices.

import { plural } from "./plural.ts";

/** They are part of `texts`. */
export const setup = {
  // Start
  starting: "Opening…",
  unusableTitle: "This browser can't be used",
  unusableNext: "Open the page in a current browser, and not in a private window: it has to keep keys.",
  welcomeTitle: "Your agents ask. You decide.",
  welcomeText: "Approve or reject what an AI agent wants to do, from your phone.",
  welcomeTrio: [
    ["server", "Your machine", "asks"],
    ["lock", "The relay", "can't read it"],
    ["phone", "This device", "signs"],
  ],
  welcomeKey: "Every answer is signed with a key that never leaves this device.",
  welcomeHow: "On the machine where your agent runs:",
  welcomeRun: "countersign up --phone",
  welcomeCode: "It shows one QR code. That code joins and pairs.",
  welcomeLost:
    "Joined before? This browser has cleared its storage. Ask for a new invitation, join again, and pair again.",
  pasteInstead: "Paste a link instead",
  invitation: "Invitation",
  invitationHint: "https://gateway.example/join#…",
  pasteInvitation: "Paste the invitation link",
  scan: "Scan the code",
  scanning: "Hold the QR code in front of the camera.",
  scanFailed: "There is no camera that this page may use. Paste the link instead.",
  joinTitle: "Join this relay?",
  joinText:
    "This browser makes keys of its own and keeps them; they can't be copied out of it. Joining uses this invitation.",
  joinAsking: "Asking the relay whom this invitation is for…",
  joinAs: "The relay says that this invitation is for",
  joinTenant: (tenant: string) => ` (${tenant}). If that isn't you, don't join.`,
  joinForMachine: (id: string) =>
    `The relay says that this invitation is for an agent's machine, ${id}, not for a person. It was not used: join with it there, and ask for one for an approver here.`,
  invitationUsedTitle: "This code was used",
  invitationUsed:
    "A code is good once: it was used, perhaps on another device, or it has expired. Show a new one on the machine with countersign up --phone.",
  scanAnother: "Scan another code",
  connectAs: (id: string) => `You answer as ${id}, says the relay.`,
  deviceNameField: "Name of this device",
  newDeviceName: (person: string, kind: "phone" | "tablet" | "browser") => `${person}'s ${kind}`,
  invitationOnce: "used up when you connect",
  connectingTitle: (machine: string) => `Connecting to ${machine}…`,
  joinedOnlyTitle: "Joined, not paired yet",
  joinedOnlyText: (machine: string) =>
    `This device has joined the relay, but ${machine} can't ask it yet. Try again, or scan the code that the machine shows now.`,
  tryAgain: "Try again",
  codeEnded: "This code was used, or has ended. Scan the one that the machine shows now.",
  connectedTitle: "Almost there",
  connectedText: (machine: string, key: string) => `Now press Enter on ${machine}. It shows this device's key: ${key}.`,
  recoveryOffer:
    "If you lose this device, a recovery code on paper lets a new one take over. You can make one later, under Devices.",
  recoveryMakeFirst: "Make a recovery code",
  join: "Join",
  joining: "Joining…",
  joinFailedRole:
    "This invitation is for an agent's machine, not for a person. It is used up. Ask for one for an approver.",
  reachOrigin: (origin: string) => `this gateway does not answer pages of ${origin}`,
  reachOriginNext: (origin: string) =>
    `The invitation was not used. Ask whoever runs the gateway to set allowed_origins = ["${origin}"], and to restart it; or use the page that the gateway serves itself.`,
  reachPolicy: "the policy of this page does not let it call the gateway",
  reachPolicyNext: (gateway: string) =>
    `The invitation was not used. Ask whoever hosts this page to add ${gateway} and ${gateway.replace(/^http/, "ws")} to connect-src of its Content-Security-Policy.`,
  reachNobody: (gateway: string) => `nobody answers at ${gateway}`,
  reachNobodyNext: "The invitation was not used. Check the connection and the address, and try again.",
  alreadyJoined: (id: string) => `This browser has joined already, as ${id}. The invitation was not used.`,
  notALink: "This is neither an invitation nor a pairing link. Copy all of it, with what follows the #.",

  // iPhone
  installTitle: "Install the app first",
  installText: "On an iPhone or iPad, a tab forgets its keys after a week. The installed app does not.",
  installSteps: [
    "Tap Share, then “Add to Home Screen”.",
    "Open Countersign from the home screen.",
    "Scan or paste the invitation there.",
  ],
  installUnused: "Your invitation was not used. Copy it to paste it in the app.",
  copyInvitation: "Copy the invitation",

  // Lost
  lostTitle: "The keys of this device are lost",
  lostText: (id: string) =>
    `This browser had joined as ${id}. It has cleared its storage, and the keys with it. Nobody else has them.`,
  lostNext:
    "Join again with a new invitation, then pair with your machines again. Revoke the old device at each machine: countersign devices.",
  rejoin: "Join again",
  refusedTitle: "This device may no longer answer",
  refusedText: "Its key was revoked, or has expired.",
  refusedNext:
    "If that wasn't you, tell whoever runs the relay. To go on, forget this device here and join again with a new invitation.",

  // Recovery
  recoveryTitle: "Write this on paper",
  recoveryText: "If you lose every device that may answer, this code lets one new device take over, once.",
  recoveryOnce: "It is shown now and never again. It is not kept on this device.",
  recoveryUntold: (machines: string) =>
    `This code does not count at ${machines}: it could not be told of it, or your device lock didn't confirm it. Make a new recovery code with Devices when the gateway can be reached.`,
  recoveryDone: "I have written it down",
  recoveryMake: "Make a new recovery code",
  recoveryMaking: "Telling your machines…",
  recoverTitle: "Use a recovery code",
  recoverText:
    "For a new device, when the old ones are lost. Join in the same name first. On the agent's machine, run countersign recovery accept: it shows its card.",
  recoveryCode: "Recovery code",
  machineCard: "Card of the machine",
  recoverGo: "Continue",
  recoverCompare: (machine: string) => `Are these the digits that ${machine} shows?`,
  recoverUnknown:
    "The gateway does not know this code. That machine was never paired with the device that made it, the code was used there, or its year is over.",
  recoverDone:
    "Signed with the code, which is used up. Paste this text on the machine; after that this device approves there, and the lost one does not.",

  // Pairing
  pairTitle: "Pair a machine",
  pairText: "On the agent's machine, run countersign pair. Scan its QR code, paste its link, or type its code.",
  pairInput: "Pairing link or code",
  pairHint: "BCDF-GHJK or https://…/pair#…",
  pair: "Pair",
  connect: "Connect",
  pairing: "Pairing…",
  pairQuestion: (machine: string) => `Connect to ${machine}?`,
  pairStraight: "The link came straight from its screen",
  pairStraightText: (machine: string) => `So this is the key of ${machine}, and there are no digits to compare.`,
  pairProof: "relay and key",
  relay: "Relay",
  pairWarning: "It may then ask you, and what you approve runs there.",
  pairOtherGateway: "This link is for another gateway than the one that this device has joined.",
  digitsTitle: "Compare the digits",
  digitsText: (machine: string) => `${machine} shows thirty digits now. Are they these?`,
  digitsSame: "They are the same",
  digitsDiffer: "They differ",
  digitsDifferDone:
    "Nothing was paired. Somebody between you and the machine may have replaced keys: do not pair over this gateway, and report it.",
  pairedTitle: "Paired",
  pairedText: (machine: string) => `Requests of ${machine} appear in your inbox.`,
  toInbox: "To the inbox",
  pairLater: "Later",

  // Devices
  thisDevice: "This device",
  machines: "Machines that may ask you",
  answerAs: (name: string) => `Devices that may answer as ${name}`,
  pairedSince: (time: string) => `paired ${time}`,
  compareDigits: "To be sure it's the real one, compare these with countersign status:",
  asksLock: "asks for its lock",
  noLock: "no lock set up",
  vouchedCount: (count: number) =>
    count === 0 ? "Only this one, as far as this device knows" : plural(count, "device", "devices"),
  relayNote: "It can't read any of this",
  recoveryNote: "In case you lose every device",
  forgetNote: "Removes its keys",
  machinesEmpty: "No machine is paired with this device.",
  since: "since",
  fingerprint: "Fingerprint",
  revokedSince: "not trusted since",
  untrust: "Stop trusting this machine…",
  untrustQuestion: (machine: string) =>
    `You'll never be able to approve anything from ${machine} here again with these keys. To use it again, it needs new keys.`,
  untrustGo: "Stop trusting it",
  pairLeft: "Nothing from it can be approved here anymore, but the relay still lists the pair:",
  removePair: "Remove it from the relay",
  vouchTitle: "Add a device",
  vouchCardTitle: "This device is new",
  vouchCardText:
    "Copy this card to a device that is already paired, and compare the digits there. Then paste the voucher it gives you.",
  vouchSignTitle: "Sign for another device",
  vouchSignText:
    "Paste the new device's card. For 90 days it can then approve on every machine this device is paired with.",
  deviceCard: "The new device's card",
  vouchCompare: (id: string) => `Does ${id}'s new device show these digits?`,
  deviceName: "What do you call it?",
  deviceNameHint: "Ada's laptop",
  vouchSign: "Sign",
  vouchers: "Paste each voucher on the new device:",
  voucher: "Voucher",
  voucherAccept: "Use this voucher",
  voucherCompare: (machine: string) =>
    `${machine} has these digits. Does the device that vouched for you show the same?`,
  voucherDone: (machine: string) =>
    `This device can approve for ${machine} as soon as that machine has heard about it.`,
  vouched: "Devices that this one has vouched for",
  revoke: "Revoke",
  revokeTitle: "Revoke a device of yours",
  revokeText:
    "Asks every machine paired with this device to refuse the other one. Until a machine confirms, it's pending; to be sure, revoke it on the machine itself.",
  revokeFingerprint: "The device's fingerprint",
  revokeSent: (machine: string) => `${machine}: signed and sent, waiting for the machine to confirm.`,
  forgetTitle: "Forget this device",
  forgetText: "Deletes this browser's keys for good. Also revoke this device on your machines.",
  forget: "Forget it",
  lockTitle: "Device lock",
  lockSet: "Asked for before you approve anything dangerous or unclear.",
  lockUnset: "Can be asked for before you approve anything dangerous or unclear.",
  lockNone:
    "This device has no lock the page can use. For anything dangerous or unclear, you hold the button for a second instead.",
  lockSetUp: "Use the device lock",
  lockSetUpAgain: "Set up the lock again",
  lockToldTo: (machines: readonly string[]) =>
    `Also checked by ${machines.join(", ")}: ${machines.length === 1 ? "it takes" : "they take"} approvals of anything dangerous or unclear from this device only with the lock.`,
  lockRenewed: (machines: readonly string[]) =>
    machines.length === 0
      ? "The lock is set up again. To let a machine check it, pair with that machine again."
      : `The lock is set up again. Pair again with ${machines.join(", ")}: until then, nothing dangerous or unclear can be approved there from this device.`,
  lockVouches: (machines: readonly string[]) =>
    `Your device lock is asked for ${machines.join(", ")}, once for each: without it, nobody who has only this device's keys adds a device there.`,
  lockNotVouched: (machine: string) =>
    `Your device lock didn't confirm it was you, so nothing was signed for ${machine}. Try again.`,
  lockUntold: "To let a machine check it too, pair with that machine again.",
  lockPairFailed:
    "The device lock wasn't set up, so nothing was paired. Try again; or connect without it, and the machine can't check who approves here.",
  lockRefused:
    "The relay refused this, perhaps because it doesn't know device locks yet. Nothing was paired. Update it and try again; or connect without the lock, and the machine can't check who approves here.",
  lockSkip: "Connect without it",
  storageTitle: "Storage",
  storageKept: "This browser has promised to keep the keys.",
  storageNotKept:
    "This browser may delete the keys when it runs low on space. Install the page as an app to prevent that.",
  gateway: "Gateway",
} as const;
