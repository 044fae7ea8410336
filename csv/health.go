// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// ailment is what is wrong with the install objects of a CSV.
type ailment string

const (
	healthy ailment = ""
	// missing: a Deployment does not exist.
	missing ailment = "ComponentMissing"
	// timedOut: a Deployment exceeded its progress deadline; waiting is no use.
	timedOut ailment = "Timeout"
	// waiting: a Deployment is there and right, but not available.
	waiting ailment = "Waiting"
	// unannotated: annotations of the CSV are not on a Pod template.
	unannotated ailment = "AnnotationsMissing"
	// outdated: a Deployment was made from something else.
	outdated ailment = "DeploymentUpdated"
	// incomputable: the Deployment that should be there cannot be computed.
	incomputable ailment = "InvalidDeployment"
)

// health looks at the Deployments of the strategy in order; the first that is
// not right decides. It does not allocate while all are. stale says that a
// Deployment is right although its annotation was written for an older state.
func health(in *Input) (what ailment, why string, stale bool) {
	c := in.ClusterServiceVersion
	specs := c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	var from origin
	deployments := finderOf(in.Deployments.Items)
	for i := range specs {
		live := ownDeployment(c, deployments, specs[i].Name)
		if live == nil {
			return missing, "missing deployment with name=" + specs[i].Name, false
		}
		if what, why = readiness(live); what != healthy {
			return what, why, false
		}
		same, marks := compareAnnotations(in, live.Spec.Template.Annotations)
		if !same {
			return unannotated, annotationProblem(in, live), false
		}
		if i == 0 {
			from = newOrigin(in, marks)
		}
		fresh := false
		if what, why, fresh = judgeHash(in, i, live, from); what != healthy {
			return what, why, false
		}
		stale = stale || !fresh
	}
	return healthy, "", stale
}

// ownDeployment returns the live Deployment of that name with the CSV's owner
// labels.
func ownDeployment(c *version, deployments finder[*appsv1.Deployment], name string) *appsv1.Deployment {
	if i := deployments.find(c.Namespace, name); i >= 0 && ownerOf(c).Owns(deployments.items[i].Labels) {
		return deployments.items[i]
	}
	return nil
}

// readiness judges a Deployment by what its controller observed. Available is
// what counts, not the number of replicas.
//
// Source: operator-lifecycle-manager pkg/controller/install/status_viewer.go.
func readiness(d *appsv1.Deployment) (ailment, string) {
	notReady := func(why string) (ailment, string) {
		return waiting, fmt.Sprintf("waiting for deployment %s to become ready: %s", d.Name, why)
	}
	if d.Generation > d.Status.ObservedGeneration {
		return notReady(fmt.Sprintf("waiting for spec update of deployment %q to be observed...", d.Name))
	}
	var available *appsv1.DeploymentCondition
	for i := range d.Status.Conditions {
		switch c := &d.Status.Conditions[i]; c.Type {
		case appsv1.DeploymentProgressing:
			if c.Reason == "ProgressDeadlineExceeded" {
				return timedOut, fmt.Sprintf("deployment %s not ready before timeout: deployment %q exceeded its progress deadline", d.Name, d.Name)
			}
		case appsv1.DeploymentAvailable:
			available = c
		}
	}
	old := d.Status.Replicas - d.Status.UpdatedReplicas
	switch {
	case old > 0:
		return notReady(fmt.Sprintf("deployment %q waiting for %d outdated replica(s) to be terminated", d.Name, old))
	case available == nil:
		return notReady(fmt.Sprintf("deployment %q not available: missing condition %q", d.Name, appsv1.DeploymentAvailable))
	case available.Status != corev1.ConditionTrue:
		return notReady(fmt.Sprintf("deployment %q not available: %s", d.Name, available.Message))
	}
	return healthy, ""
}

func isAvailable(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}

// annotationProblem names a difference between the CSV's annotations and those of
// the Pod template: of several the one with the lowest key.
func annotationProblem(in *Input, d *appsv1.Deployment) string {
	have := d.Spec.Template.Annotations
	if len(have) == 0 {
		return "no annotations found on deployment"
	}
	want := in.ClusterServiceVersion.Annotations
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if slices.Contains(in.Config.ExcludedAnnotations, key) {
			continue
		}
		value, ok := have[key]
		switch {
		case !ok:
			return "annotations on deployment does not contain expected key: " + key
		case value != want[key]:
			return fmt.Sprintf("unexpected annotation on deployment. Expected %s:%s, found %s:%s", key, want[key], key, value)
		}
	}
	return ""
}

// compareAnnotations reports whether a Pod template has the CSV's annotations, and
// sums the marks of their keys.
func compareAnnotations(in *Input, have map[string]string) (same bool, marks uint64) {
	same = true
	for key, want := range in.ClusterServiceVersion.Annotations {
		marks += mark(key)
		if value, ok := have[key]; (!ok || value != want) && !slices.Contains(in.Config.ExcludedAnnotations, key) {
			same = false
		}
	}
	return same, marks
}

// judgeHash compares the hash label with the hash of the spec that should be
// there. What the Deployment says it was made from answers that without
// computing anything.
func judgeHash(in *Input, i int, live *appsv1.Deployment, from origin) (what ailment, why string, fresh bool) {
	if hasDrifted(in, i, live) {
		return outdated, "deployment " + live.Name + " was changed, its spec is not the wanted one", false
	}
	hash := live.Labels[labelSpecHash]
	if hash == "" {
		return outdated, fmt.Sprintf("deployment %s doesn't have a spec hash, update it", live.Name), false
	}
	if from.matches(live.Annotations[installedFromKey(in)], hash) || hasForeignCertificates(in, live) {
		return healthy, "", true
	}
	want, err := desiredDeployment(in, i)
	if err != nil {
		return incomputable, "calculated deployment install is bad", false
	}
	if !isCurrentHash(in, i, want, hash) {
		return outdated, fmt.Sprintf("deployment changed old hash=%s, new hash=%s", hash, want.Labels[labelSpecHash]), false
	}
	return healthy, "", live.Annotations[installedFromKey(in)] == "" || !from.isTelling()
}

// hasForeignCertificates reports whether a Deployment serves webhooks or
// APIServices with certificates that OLM put into it. This version does not
// install certificates, so it cannot tell the hash of such a spec and leaves the
// Deployment alone.
func hasForeignCertificates(in *Input, live *appsv1.Deployment) bool {
	return live.Spec.Template.Annotations[annotationCAHash] != "" && needsCertificate(in.ClusterServiceVersion, live.Name)
}

func needsCertificate(c *version, deployment string) bool {
	for i := range c.Spec.WebhookDefinitions {
		if c.Spec.WebhookDefinitions[i].DeploymentName == deployment {
			return true
		}
	}
	for i := range c.Spec.APIServiceDefinitions.Owned {
		if c.Spec.APIServiceDefinitions.Owned[i].DeploymentName == deployment {
			return true
		}
	}
	return false
}

// staleOrigins are the Deployments that are right but say that they were made
// from an older state: their annotation is brought up to date, which rolls
// nothing. Deployments without the annotation, made by OLM, are left alone.
func staleOrigins(in *Input) []olmcore.Action {
	var actions []olmcore.Action
	specs := in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	key, deployments := installedFromKey(in), finderOf(in.Deployments.Items)
	for i := range specs {
		live := ownDeployment(in.ClusterServiceVersion, deployments, specs[i].Name)
		if live == nil || live.DeletionTimestamp != nil {
			continue
		}
		have, hash := live.Annotations[key], live.Labels[labelSpecHash]
		_, marks := compareAnnotations(in, live.Spec.Template.Annotations)
		from := newOrigin(in, marks)
		if have == "" || from.matches(have, hash) || hasForeignCertificates(in, live) {
			continue
		}
		after := live.DeepCopy()
		after.Annotations[key] = from.String() + hash
		actions = append(actions, olmcore.UpdateOf(live, after, olmcore.Cause{
			Reason: ReasonOriginChanged, Message: "the ClusterServiceVersion changed, its Deployment " + live.Name + " did not have to",
		}))
	}
	return actions
}
