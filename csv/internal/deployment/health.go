// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/csv/internal/owned"
)

// State is how the Deployments of a CSV fare.
type State string

// States.
const (
	Healthy      State = "Healthy"      // all are as they should be and available
	Missing      State = "Missing"      // one does not exist
	TimedOut     State = "TimedOut"     // one exceeded its progress deadline; waiting is no use
	Waiting      State = "Waiting"      // one is right, but not available
	Outdated     State = "Outdated"     // one was made from something else
	Incomputable State = "Incomputable" // what should exist cannot be computed
)

// Health returns how the Deployments of the strategy fare, and why, which is empty for Healthy. The first of them that
// is not right decides.
func (s Source) Health(deployments []*appsv1.Deployment) (state State, why string) {
	live := owned.ByName(deployments, s.CSV.Namespace)
	specs := s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		d := live[specs[i].Name]
		if d == nil || !owned.By(s.CSV).Owns(d.Labels) {
			return Missing, "missing deployment with name=" + specs[i].Name
		}
		if state, why = readiness(d); state != Healthy {
			return state, why
		}
		if state, why = s.compare(&specs[i], d); state != Healthy {
			return state, why
		}
	}
	return Healthy, ""
}

// readiness judges a Deployment by what its controller observed. Available is what counts, not the number of replicas.
//
// Source: operator-lifecycle-manager pkg/controller/install/status_viewer.go.
func readiness(d *appsv1.Deployment) (State, string) {
	notReady := func(format string, args ...any) (State, string) {
		return Waiting, fmt.Sprintf("waiting for deployment %s to become ready: ", d.Name) + fmt.Sprintf(format, args...)
	}
	if d.Generation > d.Status.ObservedGeneration {
		return notReady("waiting for spec update of deployment %q to be observed...", d.Name)
	}
	if c := condition(d, appsv1.DeploymentProgressing); c != nil && c.Reason == "ProgressDeadlineExceeded" {
		return TimedOut, fmt.Sprintf("deployment %s not ready before timeout: deployment %q exceeded its progress deadline", d.Name, d.Name)
	}
	available := condition(d, appsv1.DeploymentAvailable)
	switch old := d.Status.Replicas - d.Status.UpdatedReplicas; {
	case old > 0:
		return notReady("deployment %q waiting for %d outdated replica(s) to be terminated", d.Name, old)
	case available == nil:
		return notReady("deployment %q not available: missing condition %q", d.Name, appsv1.DeploymentAvailable)
	case available.Status != corev1.ConditionTrue:
		return notReady("deployment %q not available: %s", d.Name, available.Message)
	}
	return Healthy, ""
}

func condition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == kind {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

// IsAvailable reports whether the controller of a Deployment says that it is available.
func IsAvailable(d *appsv1.Deployment) bool {
	c := condition(d, appsv1.DeploymentAvailable)
	return c != nil && c.Status == corev1.ConditionTrue
}

// compare tells whether a live Deployment was made from this source.
func (s Source) compare(entry *v1alpha1.StrategyDeploymentSpec, live *appsv1.Deployment) (State, string) {
	if problem := s.annotationProblem(live); problem != "" {
		return Outdated, problem
	}
	hash := live.Labels[labelSpecHash]
	if hash == "" {
		return Outdated, fmt.Sprintf("deployment %s doesn't have a spec hash, update it", live.Name)
	}
	if s.hasOLMCertificates(live) {
		return Healthy, ""
	}
	want, err := s.desired(entry, asMeant)
	switch {
	case err != nil:
		return Incomputable, Bad
	case !s.isCurrent(entry, want, hash):
		return Outdated, fmt.Sprintf("deployment changed old hash=%s, new hash=%s", hash, want.Labels[labelSpecHash])
	}
	return Healthy, ""
}

// annotationProblem names a difference between the CSV's annotations and those of the Pod template, of several the one
// with the lowest key; empty when there is none.
func (s Source) annotationProblem(d *appsv1.Deployment) string {
	have, want := d.Spec.Template.Annotations, s.annotations()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, ok := have[key]
		switch {
		case len(have) == 0:
			return "no annotations found on deployment"
		case !ok:
			return "annotations on deployment does not contain expected key: " + key
		case value != want[key]:
			return fmt.Sprintf("unexpected annotation on deployment. Expected %s:%s, found %s:%s", key, want[key], key, value)
		}
	}
	return ""
}
