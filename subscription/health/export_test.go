// SPDX-License-Identifier: Apache-2.0

package health

// Advices returns the table of advice by situation.
func Advices() map[string]string {
	all := map[string]string{}
	for s, text := range advices {
		all[string(s)] = text
	}
	return all
}

// Situations returns the situations with advice of Subscriptions, plans and versions, in their order in docs/health.md.
func Situations() (all []string) {
	for _, s := range []situation{
		finalizersHeld, specMissing, referenceInvalid, resolutionFailed, operatorGroups, noOperatorGroup,
		unpackFailed, bundleInvalid, planTooLarge, planNotWritten, catalogsMissing, catalogsUnasked,
		heldBack, heldBackUnhelped, planWithoutSteps, planMayNotRun, approvalNeeded,
		planFailed, planFailedStored, planRetried, planUnknown, versionFailed,
		requirementsUnmet, requirementsNamed, notUpgradeable, copyInPlace, versionGone, versionAndPlan,
		unpackLate, resolvingLate, planGoneLate, planLate, stepsLate, noStepLate, versionLate,
	} {
		all = append(all, string(s))
	}
	return all
}

// Troubles returns the reasons of Deployments and Pods.
func Troubles() (all []string) {
	for _, t := range troubles {
		all = append(all, t.Reason)
	}
	return all
}
