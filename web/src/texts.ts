// Every text of the page, in one place.

const plural = (count: number, one: string, many: string): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** The texts of the page. */
export const texts = {
  name: "Countersign",

  // Navigation
  inbox: "Inbox",
  answered: "Answered",
  expired: "Expired",
  sessions: "Sessions",
  devices: "Devices",
  back: "Back",
  close: "Close",
  cancel: "Cancel",
  copy: "Copy",
  copied: "Copied",
  mainNavigation: "Main",
  skip: "Skip to the content",

  // Connection
  online: "Live",
  offline: "Offline",
  offlineBar: "Offline. What you see may be old, and nothing can be answered. Nothing is queued.",

  // Start
  starting: "Opening…",
  unusableTitle: "This browser can't be used",
  unusableNext: "Open the page in a current browser, and not in a private window: it has to keep keys.",
  welcomeTitle: "Review what your agents want to do",
  welcomeText:
    "To use this page you need an invitation to a gateway. Whoever runs the gateway gives you a link or a QR code.",
  welcomeLost:
    "Had you joined here before? Then this browser has lost its storage, and with it the keys of this device. Ask for a new invitation, join again, and pair again.",
  invitation: "Invitation",
  invitationHint: "https://gateway.example/join#…",
  pasteInvitation: "Paste the invitation link",
  scan: "Scan with the camera",
  scanning: "Hold the QR code in front of the camera.",
  scanFailed: "There is no camera that this page may use. Paste the link instead.",
  joinTitle: "Join this gateway?",
  joinText:
    "This browser makes keys of its own and keeps them; they can't be copied out of it. The invitation is used up.",
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
  refusedTitle: "This device is not known to the gateway any more",
  refusedText: "Its key was revoked or has expired. Nothing can be received or answered here.",
  refusedNext:
    "If you did not expect this, ask whoever runs the gateway. To go on, forget this device here and join again with a new invitation.",

  // Recovery
  recoveryTitle: "Your recovery code",
  recoveryText:
    "Write it on paper, and keep it where you keep keys. If you lose every device that can approve, it lets one new device take their place, once. It is shown this once, and is not kept here.",
  recoveryUntold: (machines: string) =>
    `This code does not count at ${machines}, which could not be told of it. When the gateway can be reached again, make a new recovery code with Devices.`,
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
  pairTitle: "Pair with a machine",
  pairText: "On the agent's machine, run countersign pair. Scan its QR code, paste its link, or type its code.",
  pairInput: "Pairing link or code",
  pairHint: "BCDF-GHJK or https://…/pair#…",
  pair: "Pair",
  pairing: "Pairing…",
  pairQuestion: "Pair with this machine?",
  pairWarning: "What this machine asks for will appear here, and your approvals count there.",
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

  // Stops
  stopTitle: "Stop: a key is not what it was",
  stopMachine: "Machine",
  stopKeyChanged:
    "Something that claims to be this machine uses other keys than those that you confirmed. It may have been set up again. It may also be somebody who wants you to approve for them.",
  stopReplaced:
    "The keys that the gateway relays are not those of the machine that shows the link. The gateway, or somebody in its place, tries to get between you and the machine.",
  stopRead: "I have read this. Nothing is trusted.",

  // Inbox
  inboxEmpty: "Nothing waits for you.",
  inboxUnpaired: "This device is not paired with a machine yet.",
  more: (count: number) => `${count} more`,
  waiting: (count: number) => plural(count, "request waits", "requests wait"),
  verified: "Paired and verified machine",
  unverified: "Not verified",
  notShown: "A request that can't be shown",
  notShownRule: "What can't be shown can't be approved.",
  hide: "Remove from the list",
  cut: (count: number) => ` … ${plural(count, "more character", "more characters")}: open it to see all`,
  timeLeft: (left: string) => `${left} left`,
  end: {
    withdrawn: "Taken back by the machine",
    expired: "Expired: nobody answered in time",
    answered: "Answered on another device",
    cancelled: "Cancelled by the operator",
    hidden: "Removed from the list on another device",
    gone: "Does not wait any more",
  },
  expiredEmpty: "Nothing has expired.",
  answeredEmpty: "Nothing was answered on this device.",

  // Review
  notExamined: "not examined",
  notExaminedLine: "Not examined: nobody has derived what this does.",
  askedBy: "asked by",
  in: "in",
  key: "key",
  factRequest: "request",
  factHash: "SHA-256 of what you sign",
  factSession: "session",
  factEffect: "effect:",
  whichIsDangerous: ", which is dangerous",
  factShell: "a shell reads this text:",
  factRuns: "runs",
  factArgument: "     ",
  factFolder: "in",
  factVariable: "with",
  secretValue: "(a secret that is not shown)",
  factInput: (size: number, digest: string) => `reads ${size.toLocaleString("en")} bytes of input, SHA-256 ${digest}`,
  factCommit: "at commit",
  contentNotSent: "The content was not sent; only its digest is known.",
  noLineBreak: "(no line break at the end)",
  role: { executable: "executable", script: "script" },
  status: { added: "added", modified: "modified", deleted: "deleted", renamed: "renamed", copied: "copied" },
  from: "from",
  binary: "binary",
  nothing: "nothing",
  bytes: (size: number) => plural(size, "byte", "bytes"),
  steps: "steps",
  changes: "changed since the last checkpoint",
  earlier: (id: string, hash: string) => `after request ${id}, hash ${hash}`,
  shownAsJson: "Shown as the JSON that it is:",
  lines: (count: number) => plural(count, "line", "lines"),
  unfold: "Open",
  fold: "Close",
  unknownRequest: "This request does not wait any more.",

  // Answer
  reject: "Reject",
  approve: "Approve",
  approveScope: { once: "Approve", session: "Approve for this session", timebox: "Approve for 1 hour" },
  unopened: (files: number, of: number) => `${files} of ${of} files unopened`,
  notSeen: (lines: number, of: number) => `${lines.toLocaleString("en")} of ${of.toLocaleString("en")} lines not shown`,
  openFirst: (files: number) => `Open ${plural(files, "more file", "more files")} to approve`,
  hold: "Hold to approve",
  holding: "Keep holding…",
  letGo: "Let go to approve",
  dangerous: "Dangerous",
  dangerousHelp: "Everything must be opened. Then hold the button for a second.",
  lockHelp: "The lock of this device asks who you are.",
  noLockHelp: "This device has no lock that the page can ask for.",
  lockCancelled: "The lock of this device did not confirm you. Nothing was signed.",
  lockWrong: "What came from the lock of this device is wrong. Nothing was signed.",
  words: "Words",
  wordsTitle: "Words for the agent",
  wordsHelp: "They are sealed to the machine, and reach the agent with your answer.",
  rejectWithWords: "Reject with these words",
  approveWithWords: "Approve with these words",
  confirmKey: (what: string) => `${what}? Press y to approve, Esc to go back.`,
  signing: "Signing…",
  answeredBefore: "This device has answered this request before. Nothing was sent.",
  notTrustedNow: "This machine is not trusted any more. Nothing was signed.",
  expiredNow: "It has expired. Nothing was approved.",
  shown: (files: string, lines: string, screen: string) => `${files}, ${lines}, page ${screen}`,
  shownFiles: (files: number, of: number) => `${files} of ${of} files`,
  shownLines: (lines: number, of: number) => `${lines} of ${of} lines`,
  shownLock: "device unlocked",

  // Scope
  scope: "Scope",
  scopeTitle: "What may run without asking?",
  scopeOnce: "Once",
  scopeSession: "This session",
  scopeHour: "1 hour, only this pattern",
  scopeOnceSentence: "Only this request is approved; nothing else will run without asking.",
  scopeSessionSentence: (id: string) =>
    `Until session ${id} ends, at most 8 hours, exactly this runs again without asking; anything else asks.`,
  scopeHourSentence: (pattern: string, folder: string) =>
    `For 1 hour, every ${pattern} in ${folder} runs without asking; other options, programs and scripts and dangerous effects ask.`,
  scopePattern: "Tap an argument to allow any in its place.",
  scopeRest: "Any further arguments too",
  scopeOnlyOnce: "What is dangerous always asks, so it can be approved once only.",
  choose: "Choose",

  // Afterwards
  timeline: "What became of your answer",
  approved: "approved",
  rejected: "rejected",
  stepSigned: { approve: "approval signed", reject: "rejection signed" },
  stepAccepted: "accepted by the gateway",
  stepAcceptedNot: "not accepted yet",
  stepDelivered: "delivered to the machine, says the gateway",
  stepDeliveredNot: "not delivered yet; the machine gets it when it asks",
  stepReported: (machine: string) => `${machine} has not reported yet`,
  stepApplied: { approve: "applied by the machine", reject: "stopped by the machine" },
  exitStatus: (status: number) => `exit status ${status}`,
  stepRefused: (reason: string) => `not applied, the machine says: ${reason}`,
  stepDrifted: "not applied: it had changed since you saw it",
  stepTooLate: "not applied: your answer came too late",
  stepForged: (why: string) => `don't trust what came in place of a receipt: ${why}`,
  signedReceipt: "signed receipt, verified",
  failed: {
    answered: "Somebody else answered first. Your answer does not count.",
    expired: "It expired before your answer arrived. Nothing was approved.",
    withdrawn: "The machine took it back before your answer arrived.",
    cancelled: "The operator cancelled it before your answer arrived.",
    refused: "The gateway refused your answer. Nothing was approved.",
    unreachable:
      "It is not known whether your answer reached the gateway. The page goes on asking; the same answer may be sent again while the request waits.",
  },
  sendAgain: "Send again",
  exportProof: "Save the proof",
  exportHelp:
    "A file that countersign verify checks without a gateway: that you signed, and that the machine has reported.",
  scopeWord: { once: "once", session: "for this session", timebox: "for 1 hour" },
  yourWords: "your words",
  whatYouSaw: "what was on your screen",

  // Sessions
  sessionsEmpty: "No agent has reported a session.",
  sessionState: "state, says the gateway",
  sessionMachine: "machine",
  sessionUpdated: "last news",
  snapshot: { summary: "Summary", plan: "Plan", diff_summary: "Changes", context: "Context" },
  promptTitle: "Send words to the agent",
  promptHelp: "They are sealed to the machine, and can be used for an hour.",
  promptMachine: "Machine",
  send: "Send",
  promptStatus: {
    sending: "not yet confirmed by the gateway",
    queued: "waits for the machine",
    delivered: "the agent has it, says the gateway",
    rejected: "the machine did not take it",
    expired: "its time was over",
    unheard: "no word of it came in time",
    error: "it could not be passed on",
  },

  // Devices
  thisDevice: "This device",
  machines: "Machines",
  machinesEmpty: "No machine is paired with this device.",
  since: "since",
  fingerprint: "Fingerprint",
  revokedSince: "not trusted since",
  untrust: "Stop trusting this machine",
  untrustQuestion: (machine: string) =>
    `Nothing of ${machine} can be approved here any more, for good. Its keys never come back.`,
  untrustGo: "Stop trusting it",
  pairLeft: "Nothing of it can be approved here any more. The gateway still lists the pair:",
  removePair: "Remove it at the gateway",
  vouchTitle: "Let another device approve",
  vouchCardTitle: "This device is new",
  vouchCardText:
    "Copy this card to a device that is paired, and compare the digits there. Then paste the voucher that you get.",
  vouchSignTitle: "Sign for another device",
  vouchSignText:
    "Paste the card of the new device. It may approve for 90 days, at every machine that this device was paired with.",
  deviceCard: "Card of the new device",
  vouchCompare: (id: string) => `Are these the digits on the new device of ${id}?`,
  vouchSign: "Sign",
  vouchers: "Paste each voucher on the new device:",
  voucher: "Voucher",
  voucherAccept: "Take the voucher",
  voucherCompare: (machine: string) =>
    `${machine} has these digits. Does the device that vouched for you show the same?`,
  voucherDone: (machine: string) => `This device may approve for ${machine}, as soon as that machine has heard of it.`,
  vouched: "Devices that this one has vouched for",
  revoke: "Revoke",
  revokeTitle: "Revoke a device of yours",
  revokeText:
    "Every machine that is paired with this device is asked to refuse it. It is pending until the machine has taken it; to be sure, revoke it at the machine.",
  revokeFingerprint: "Fingerprint of the device",
  revokeSent: (machine: string) => `${machine}: signed and sent. Pending until that machine has taken it.`,
  forgetTitle: "Forget this device",
  forgetText: "Removes the keys from this browser, for good. Revoke the device at your machines as well.",
  forget: "Forget it",
  lockTitle: "Lock of this device",
  lockSet: "It is asked before something dangerous is approved.",
  lockUnset: "It can be asked before something dangerous is approved.",
  lockNone: "This device has no lock that the page can ask for. Something dangerous needs a second's hold only.",
  lockSetUp: "Use the lock",
  storageTitle: "Storage",
  storageKept: "This browser has promised to keep the keys.",
  storageNotKept: "This browser may clear the keys when space is short. Install the page as an app to prevent that.",
  gateway: "Gateway",

  // Keyboard
  keysTitle: "Keys",
  keys: [
    ["j, k", "next and previous card"],
    ["Enter", "open the card"],
    ["a, then y", "approve"],
    ["r", "reject at once"],
    ["Shift r", "reject with words"],
    ["s", "choose the scope"],
    ["o", "open the next file"],
    ["Esc", "back"],
    ["?", "these keys"],
  ],
  somethingFailed: "It did not work.",
} as const;
