// SPDX-License-Identifier: Apache-2.0

package health

import "strings"

// situation is a key of advices.
type situation string

// Situations that get advice at once.
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

// Situations that get advice once they have lasted for longTime.
const (
	unpackLate    situation = "UnpackingLong"
	resolvingLate situation = "ResolvingLong"
	planGoneLate  situation = "PlanDeletedLong"
	planLate      situation = "PlanWaitsLong"
	stepsLate     situation = "StepsWaitLong"
	noStepLate    situation = "NoStepLeft"
	versionLate   situation = "VersionWaitsLong"
)

// advices contains the advice for each situation. {object} is replaced by Health.Object, {subscription} by the
// Subscription, {what} by the names or the text of the situation, and {remove} by the objects to delete. The reasons of
// Deployments and Pods are situations, too.
var advices = map[situation]string{
	finalizersHeld:    "Check the controllers that must remove the finalizers {what} from {object}.",
	specMissing:       "Delete {object} and create it with a spec.",
	referenceInvalid:  "Clear status.installPlanRef of {object}.",
	resolutionFailed:  "Change the Subscriptions, the installed operators or the catalogs that the message names.",
	operatorGroups:    "Keep exactly one OperatorGroup in {object} and delete the others.",
	noOperatorGroup:   "Create exactly one OperatorGroup in {object} to select the namespaces that its operators watch.",
	unpackFailed:      "Make the bundle image available, or follow the advice in the message.",
	bundleInvalid:     "Correct the bundle in its catalog, or choose another channel in {subscription}.",
	planTooLarge:      "Reduce the size of the largest steps, or serve their bundles as images.",
	planNotWritten:    "Remove the cause that the message names; the InstallPlan is then written automatically.",
	catalogsMissing:   "Make {object} available, or remove the catalogs that are not needed.",
	catalogsUnasked:   "Make the catalogs available so that newer versions can be found.",
	heldBack:          "{what}",
	heldBackUnhelped:  "Remove the cause that the message names so that {subscription} gets a newer version.",
	planWithoutSteps:  "Delete {object}.",
	planMayNotRun:     "Correct the OperatorGroup or the ServiceAccount that the message names.",
	approvalNeeded:    "Review {object} and set its spec.approved to true.",
	planFailed:        "Remove the cause, then delete {remove}.",
	planFailedStored:  "{what}, then delete {remove}.",
	planRetried:       "Remove the cause; {object} is then retried automatically.",
	planUnknown:       "Correct status.phase of {object}, or delete it.",
	versionFailed:     "Check the status and the Deployments of {object}.",
	requirementsUnmet: "Create or correct the requirements that status.requirementStatus of {object} lists as not met.",
	requirementsNamed: "Create or correct these requirements: {what}.",
	notUpgradeable:    "Wait until the operator allows its upgrade in {object}, or set Upgradeable to True in its spec.overrides.",
	copyInPlace:       "Delete {subscription}, or uninstall the operator whose copied CSV has the same name.",
	versionGone:       "Delete {what} to install the version again.",
	versionAndPlan:    "Delete {subscription} and create it again to install the version again.",

	unpackLate:    "Check the Jobs that unpack the bundles, and check that the bundle images can be pulled.",
	resolvingLate: "Check that the OLM controllers are running and can reach the catalogs.",
	planGoneLate: "Check that the OLM controllers are running, or delete {object} and create it again: " +
		"its InstallPlan was deleted, and the namespace was not resolved again.",
	planLate:    "Check that the OLM controllers are running and watch {object}.",
	stepsLate:   "Check why these steps of {object} are not done: {what}.",
	noStepLate:  "Check that the OLM controllers are running: all steps of {object} are done, but its phase has not changed.",
	versionLate: "Check the status and the Deployments of {object}.",

	ReasonDeploymentMissing: "Check that the OLM controllers are running: they create {object}.",
	ReasonReplicaFailure:    "Remove the cause that prevents the creation of Pods of {object}, such as a quota or an admission webhook.",
	ReasonDeadline:          "Check the events of {object}, which exceeded its progress deadline.",
	ReasonUnavailable:       "Check the Pods of {object}.",
	ReasonUnschedulable:     "Add capacity, or change the scheduling requirements of {object} with spec.config of {subscription}.",
	ReasonImagePull:         "Make the image available: correct its name, mirror it, or give the ServiceAccount of {object} a pull secret.",
	ReasonInvalidImage:      "Correct the image name of {object}.",
	ReasonContainerConfig:   "Create the ConfigMap, the Secret or the key that the message names for {object}.",
	ReasonContainerCreate:   "Check the events of {object}: its node cannot create the container.",
	ReasonContainerRun:      "Correct the command or the image of {object}: its container cannot be started.",
	ReasonCrashLoop:         "Read the log of {object} with kubectl logs --previous, and remove the cause.",
	ReasonOutOfMemory:       "Raise the memory limit of {object} with spec.config.resources of {subscription}.",
	ReasonPodFailed:         "Check the message and the node of {object}; the Deployment replaces the Pod.",
	ReasonPodPending:        "Check the events of {object}, which waits for its volumes, its network or its init containers.",
	ReasonNotReady:          "Check the log and the readiness probe of {object}.",
}

// fill returns the advice for a situation. It is empty if there is none.
func (f *finding) fill(s situation) string {
	return strings.NewReplacer(
		"{object}", f.Object.String(), "{subscription}", f.Subscription.String(), "{what}", f.what, "{remove}", f.remove,
	).Replace(advices[s])
}
