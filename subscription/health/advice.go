// SPDX-License-Identifier: Apache-2.0

package health

import "strings"

// situation is what the table advices has a row for.
type situation string

// Situations in which there is something to do at once.
const (
	finalizersHeld    situation = "FinalizersHeld"
	specMissing       situation = "SpecMissing"
	referenceInvalid  situation = "ReferenceInvalid"
	resolutionFailed  situation = "ResolutionFailed"
	operatorGroups    situation = "OperatorGroupCount"
	noOperatorGroup   situation = "NoOperatorGroup"
	unpackFailed      situation = "UnpackFailed"
	bundleInvalid     situation = "BundleInvalid"
	planTooLarge      situation = "PlanTooLarge"
	planNotWritten    situation = "PlanNotWritten"
	catalogsMissing   situation = "CatalogsUnhealthy"
	catalogsUnasked   situation = "CatalogsUnhealthyWhenInstalled"
	heldBack          situation = "HeldBack"
	heldBackUnhelped  situation = "HeldBackWithoutRemedy"
	planWithoutSteps  situation = "PlanWithoutSteps"
	planMayNotRun     situation = "PlanMayNotRun"
	approvalNeeded    situation = "ApprovalNeeded"
	planFailed        situation = "PlanFailed"
	planFailedStored  situation = "PlanFailedAtStoredVersion"
	planRetried       situation = "PlanRetried"
	planUnknown       situation = "PlanPhaseUnknown"
	versionFailed     situation = "VersionFailed"
	requirementsUnmet situation = "RequirementsNotMet"
	requirementsNamed situation = "RequirementsNamed"
	notUpgradeable    situation = "NotUpgradeable"
	copyInPlace       situation = "CopyInPlace"
	versionGone       situation = "VersionGone"
	versionAndPlan    situation = "VersionAndPlanGone"
)

// Situations in which there is something to do once they have lasted for longTime.
const (
	unpackLate    situation = "UnpackingLong"
	resolvingLate situation = "ResolvingLong"
	planGoneLate  situation = "PlanDeletedLong"
	planLate      situation = "PlanWaitsLong"
	stepsLate     situation = "StepsWaitLong"
	noStepLate    situation = "NoStepLeft"
	versionLate   situation = "VersionWaitsLong"
)

// advices says what the user can do. {object} is the object that the answer is about, {subscription} the Subscription,
// {what} what the situation adds: names, or a sentence. {remove} names the objects to delete. The reasons of
// Deployments and Pods are situations, too.
var advices = map[situation]string{
	finalizersHeld:    "It waits for what put the finalizers {what} on {object}.",
	specMissing:       "Delete {object} and create it with a spec.",
	referenceInvalid:  "Clear status.installPlanRef of {object}.",
	resolutionFailed:  "Change the Subscriptions, the installed operators or the catalogs that the message names.",
	operatorGroups:    "Leave exactly one OperatorGroup in {object}.",
	noOperatorGroup:   "Create an OperatorGroup in {object}, exactly one: it says which namespaces its operators watch.",
	unpackFailed:      "Make the bundle image available, or follow the advice of the message.",
	bundleInvalid:     "Correct the bundle in its catalog, or choose another channel in {subscription}.",
	planTooLarge:      "Make the largest steps smaller, or serve their bundles as images.",
	planNotWritten:    "Remove what the message names. The InstallPlan is written again by itself.",
	catalogsMissing:   "Make {object} available, or remove the catalogs that are not needed.",
	catalogsUnasked:   "Make the catalogs available: until then no newer version is seen.",
	heldBack:          "{what}",
	heldBackUnhelped:  "Change what the message names, so that {subscription} gets a newer version.",
	planWithoutSteps:  "Delete {object}.",
	planMayNotRun:     "Repair the OperatorGroup or the ServiceAccount that the message is about.",
	approvalNeeded:    "Review {object} and set its spec.approved to true.",
	planFailed:        "Remove the cause; then delete {remove}.",
	planFailedStored:  "{what}; then delete {remove}.",
	planRetried:       "Remove the cause; {object} is tried again by itself.",
	planUnknown:       "Repair the status of {object}, or delete it.",
	versionFailed:     "Look at the status of {object} and at its Deployments.",
	requirementsUnmet: "Provide what status.requirementStatus of {object} lists as not met.",
	requirementsNamed: "Provide what is not met: {what}.",
	notUpgradeable:    "Wait until the operator allows its upgrade in {object}, or override its condition Upgradeable with True in spec.overrides.",
	copyInPlace:       "Delete {subscription}, or the operator whose copy is in its place.",
	versionGone:       "Delete {what} to install the version again.",
	versionAndPlan:    "Delete {subscription} and create it again to install the version again.",

	unpackLate:    "Look at the Jobs that unpack the bundles, and whether the bundle images can be pulled.",
	resolvingLate: "Look whether the controller runs and reaches the catalogs.",
	planGoneLate:  "Look whether the controller runs, or delete {object} and create it again: its InstallPlan was deleted, and the namespace was not resolved again.",
	planLate:      "Look whether the controller runs and sees {object}.",
	stepsLate:     "Look at what the steps of {object} wait for: {what}.",
	noStepLate:    "Look whether the controller runs: no step of {object} is left.",
	versionLate:   "Look at the status of {object} and at its Deployments.",

	ReasonDeploymentMissing: "Look whether the controller runs: it creates {object}.",
	ReasonReplicaFailure:    "Remove what keeps the Pods of {object} from being created, such as a quota or an admission webhook.",
	ReasonDeadline:          "Look at the events of {object}: it made no progress before its deadline.",
	ReasonUnavailable:       "Look at the Pods of {object}.",
	ReasonUnschedulable:     "Add capacity, or change what {object} demands of a node with spec.config of {subscription}.",
	ReasonImagePull:         "Make the image available: correct its name, mirror it, or give the ServiceAccount of {object} a pull secret.",
	ReasonInvalidImage:      "Correct the name of the image: the one of {object} is none.",
	ReasonContainerConfig:   "Create the ConfigMap, the Secret or the key that the message names for {object}.",
	ReasonContainerCreate:   "Look at the events of {object}: its node cannot make the container.",
	ReasonContainerRun:      "Correct the command or the image of {object}: its container cannot be started.",
	ReasonCrashLoop:         "Read the log of {object} with kubectl logs --previous, and remove the cause.",
	ReasonOutOfMemory:       "Give {object} more memory with spec.config.resources of {subscription}.",
	ReasonPodFailed:         "Look at the message and at the node of {object}; another Pod takes its place.",
	ReasonPodPending:        "Look at the events of {object}: it waits for its volumes, its network or its init containers.",
	ReasonNotReady:          "Look at the log and the readiness probe of {object}.",
}

// fill writes the advice for a situation; empty for none.
func (f *finding) fill(s situation) string {
	return strings.NewReplacer(
		"{object}", f.Object.String(), "{subscription}", f.Subscription.String(), "{what}", f.what, "{remove}", f.remove,
	).Replace(advices[s])
}
