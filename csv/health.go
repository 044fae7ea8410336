// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/deployment"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
)

// judgeInstalling waits until the operator is healthy, or InstallTimeout passes.
func judgeInstalling(f *facts) (decision, bool) {
	d, _ := health(f, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVReasonWaiting)
	left := cmp.Or(f.in.Config.InstallTimeout, DefaultInstallTimeout) - f.sinceTransition()
	switch {
	case d.phase == v1alpha1.CSVPhaseInstalling && left <= 0:
		return fail(v1alpha1.CSVReasonInstallCheckFailed, "install timeout").named("InstallTimeout"), true
	case d.phase == v1alpha1.CSVPhaseInstalling:
		d = d.requeue(left)
	}
	return d.write(f.services.Clients.Trust()...), true
}

// judgeSucceeded keeps a CSV Succeeded while its whole operator is healthy.
func judgeSucceeded(f *facts) (decision, bool) {
	d, state := health(f, v1alpha1.CSVPhaseFailed, v1alpha1.CSVReasonComponentUnhealthy)
	if state == deployment.Healthy && isAnyUnmet(f.csv.Status.RequirementStatus) {
		d = d.reporting()
		d.refreshes = true
	}
	if state == deployment.Healthy {
		d = d.write(deployment.Removals(f.csv, f.in.Deployments.Items)...).write(f.services.Certificates.Settle...)
	}
	return d.write(f.services.Clients.Trust()...).and(nextRenewal(f, d.phase)), true
}

// judgeFailed installs missing and outdated objects again. The CSV stays Failed if all objects are up to date and only
// unavailable, because another installation would change nothing.
func judgeFailed(f *facts) (decision, bool) {
	d, state := health(f, v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall)
	if state == deployment.Waiting && d.phase == v1alpha1.CSVPhasePending {
		d = fail(v1alpha1.CSVReasonComponentUnhealthy, d.message)
	}
	return d.write(f.services.Clients.Trust()...).and(nextRenewal(f, d.phase)), true
}

// disruptedPace is how often an APIService is checked while Pods of its Deployment start or stop.
const disruptedPace = 10 * time.Second

// health judges all parts of the operator. If a part is missing or not ready yet, the decision has the given phase and
// reason. If a part is outdated, or only an installation repairs it, the CSV is InstallReady again.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, updateInstallStatus. Differs: an object that is
// missing while the CSV is Installing is installed again at once, not after the timeout.
func health(f *facts, to phase, reason v1alpha1.ConditionReason) (decision, deployment.State) {
	state, why := f.deployments().Health()
	if isCalled(f.csv) && state != deployment.Incomputable && state != deployment.TimedOut {
		if d, worse := serviceHealth(f, state, to, reason); worse != "" {
			return d, worse
		}
	}
	return deploymentHealth(state, why, to, reason), state
}

// deploymentHealth returns the decision that follows from the state of the Deployments alone.
func deploymentHealth(state deployment.State, why string, to phase, reason v1alpha1.ConditionReason) decision {
	switch state {
	case deployment.Healthy:
		return move(v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVReasonInstallSuccessful, "install strategy completed with no errors")
	case deployment.Incomputable:
		return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall, why)
	case deployment.TimedOut:
		return fail(v1alpha1.CSVReasonInstallCheckFailed, "install failed: "+why)
	case deployment.Outdated:
		return move(v1alpha1.CSVPhaseInstallReady, reason, "installing: "+why)
	}
	return move(to, reason, "installing: "+why)
}

// serviceHealth returns the decision that follows from webhooks and APIServices, and the state that they give the
// operator. The state is empty if they are at least as healthy as the Deployments.
func serviceHealth(f *facts, state deployment.State, to phase, reason v1alpha1.ConditionReason) (decision, deployment.State) {
	clients := f.services.Clients.Health()
	ifMissing := to
	if to == v1alpha1.CSVPhaseInstalling {
		ifMissing = v1alpha1.CSVPhaseInstallReady
	}
	certificates := f.services.Certificates.Install
	// 1. An installation repairs these.
	switch {
	case clients.State == internalserving.Disrupted:
		return f.stay().requeue(disruptedPace).requeue(f.services.Clients.DisruptedFor()), state
	case clients.State == internalserving.Missing:
		return move(ifMissing, reason, clients.Message), deployment.Missing
	case clients.State == internalserving.Failing:
		return move(v1alpha1.CSVPhaseInstallReady, reason, "Webhook install failed: "+clients.Message), deployment.Outdated
	case state == deployment.Healthy && len(certificates) > 0:
		_, target, _ := certificates[0].Describe()
		outdated := fmt.Sprintf("installing: %s %s is missing or outdated", target.Kind, target.Name)
		return move(v1alpha1.CSVPhaseInstallReady, reason, outdated), deployment.Outdated
	}
	// 2. These need time, possibly because one of the above is missing.
	if clients.State == internalserving.Waiting && (state == deployment.Healthy || state == deployment.Waiting) {
		return move(to, reason, clients.Message), deployment.Waiting
	}
	return decision{}, ""
}
