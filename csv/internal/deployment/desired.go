// SPDX-License-Identifier: Apache-2.0

// Package deployment computes the Deployments of a ClusterServiceVersion and compares them with the live ones. It
// returns the writes that install them, and their health.
package deployment

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/internal/objecthash"
	"github.com/olmcore/olm/olmcore"
)

// labelSpecHash is OLM's label with the hash of the spec from which a Deployment was created. The live spec cannot be
// compared, because it contains the defaults of the API server.
const labelSpecHash = "olm.deployment-spec-hash"

// ConditionVariable is the environment variable that names the OperatorCondition of an operator to its containers.
const ConditionVariable = "OPERATOR_CONDITION_NAME"

// Source contains the observed objects from which this package computes the health and the writes of Deployments.
type Source struct {
	model.Operator
	// Mount adds the certificate to the spec of a Deployment that needs one. It returns false if the certificate does not
	// exist yet. Then the desired Deployment cannot be computed.
	Mount func(deployment string, spec *appsv1.DeploymentSpec) bool
}

// ConfigOf returns the spec.config of the Subscription that installs a CSV, or nil if there is no such Subscription.
// Like subscription.EffectiveConfig, it prefers a Subscription that has installed the CSV to one that is about to
// install it. Among several Subscriptions, the oldest is used, then the first by name.
func ConfigOf(c *model.CSV, subscriptions []*v1alpha1.Subscription) *v1alpha1.SubscriptionConfig {
	var best *v1alpha1.Subscription
	for _, s := range subscriptions {
		if model.IsInstalledBy(c, s) && (best == nil || comesBefore(c, s, best)) {
			best = s
		}
	}
	if best == nil || best.Spec == nil {
		return nil
	}
	return best.Spec.Config
}

func comesBefore(c *model.CSV, a, b *v1alpha1.Subscription) bool {
	if installs := a.Status.InstalledCSV == c.Name; installs != (b.Status.InstalledCSV == c.Name) {
		return installs
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

// copies reports whether an annotation of the CSV is copied to Pod templates.
func (s Source) copies(key string) bool { return !slices.Contains(s.ExcludedAnnotations, key) }

// desired returns the Deployment for an entry of the install strategy. Its spec and the hash of the spec are identical
// to those of OLM. It returns an error if there is no certificate, or if the hash cannot be computed.
//
// Source: operator-lifecycle-manager pkg/controller/install/deployment.go.
func (s Source) desired(entry *v1alpha1.StrategyDeploymentSpec, o overlay) (*appsv1.Deployment, error) {
	labels := model.OwnerOf(s.CSV).Labels()
	labels[olmcore.LabelManaged] = "true"
	for key, value := range entry.Label {
		if _, ours := labels[key]; !ours {
			labels[key] = value
		}
	}
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Name: entry.Name, Namespace: s.CSV.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(s.CSV)},
		},
	}
	entry.Spec.DeepCopyInto(&d.Spec)
	if s.Mount != nil && !s.Mount(entry.Name, &d.Spec) {
		return nil, errNoCertificate
	}
	for key, value := range s.CSV.Annotations {
		if s.copies(key) {
			metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, key, value)
		}
	}
	if s.Config != nil || len(s.ProxyEnv) > 0 {
		o.applyConfig(d, s.Config, s.ProxyEnv)
	}
	o.nameCondition(&d.Spec.Template.Spec, s.CSV.Name)
	d.Spec.RevisionHistoryLimit = new(int32(1))
	hash, err := objecthash.Hash(&d.Spec)
	if err != nil {
		return nil, fmt.Errorf("hash of deployment %s: %w", entry.Name, err)
	}
	labels[labelSpecHash] = hash
	return d, nil
}

// NameCondition sets the variable ConditionVariable of every container to the name of the OperatorCondition.
func NameCondition(pod *corev1.PodSpec, name string) { asMeant.nameCondition(pod, name) }

func (o overlay) nameCondition(pod *corev1.PodSpec, name string) {
	for i := range pod.Containers {
		container := &pod.Containers[i]
		container.Env = merge(o, container.Env, []corev1.EnvVar{{Name: ConditionVariable, Value: name}}, envName)
	}
}

// NamesCondition reports whether the variable ConditionVariable of every container has the value name. If a container
// has the variable twice, the last value is used.
func NamesCondition(pod *corev1.PodSpec, name string) bool {
	return !slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		value := ""
		for _, env := range c.Env {
			if env.Name == ConditionVariable {
				value = env.Value
			}
		}
		return value != name
	})
}

// isCurrent reports whether a hash label is that of the desired Deployment, or the one that OLM would write for the
// same CSV and configuration. So adopting a cluster restarts no operator.
func (s Source) isCurrent(entry *v1alpha1.StrategyDeploymentSpec, want *appsv1.Deployment, hash string) bool {
	if want.Labels[labelSpecHash] == hash {
		return true
	}
	for _, o := range [...]overlay{asOLM, asOLMDetached} {
		other, err := s.desired(entry, o)
		if err == nil && other.Labels[labelSpecHash] == hash {
			return true
		}
	}
	return false
}

var errNoCertificate = errors.New("the deployment has no certificate to serve with")

// State is the health of the Deployments of a CSV.
type State string

// States of Deployments.
const (
	Healthy      State = "Healthy"      // Healthy means that all Deployments are available and up to date.
	Missing      State = "Missing"      // Missing means that a Deployment does not exist.
	TimedOut     State = "TimedOut"     // TimedOut means that a Deployment exceeded its progress deadline.
	Waiting      State = "Waiting"      // Waiting means that a Deployment is not available yet.
	Outdated     State = "Outdated"     // Outdated means that a Deployment does not have the desired spec.
	Incomputable State = "Incomputable" // Incomputable means that the desired Deployment cannot be computed.
)

// Health returns Healthy if all Deployments of the strategy are healthy. Otherwise it returns the State of the first
// Deployment that is not healthy, and why it is not healthy.
func (s Source) Health() (state State, why string) {
	live := model.IndexByName(s.Deployments, s.CSV.Namespace)
	specs := s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		d := live[specs[i].Name]
		if d == nil || !model.OwnerOf(s.CSV).Owns(d.Labels) {
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

// readiness returns the state of a Deployment according to its status. The condition Available counts, not the number
// of replicas.
//
// Source: operator-lifecycle-manager pkg/controller/install/status_viewer.go.
func readiness(d *appsv1.Deployment) (State, string) {
	notReady := func(format string, args ...any) (State, string) {
		return Waiting, fmt.Sprintf("waiting for deployment %s to become ready: ", d.Name) + fmt.Sprintf(format, args...)
	}
	if d.Generation > d.Status.ObservedGeneration {
		return notReady("waiting for spec update of deployment %q to be observed...", d.Name)
	}
	c := condition(d, appsv1.DeploymentProgressing)
	if c != nil && c.Reason == "ProgressDeadlineExceeded" {
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

// IsAvailable reports whether the condition Available of a Deployment is True.
func IsAvailable(d *appsv1.Deployment) bool {
	c := condition(d, appsv1.DeploymentAvailable)
	return c != nil && c.Status == corev1.ConditionTrue
}

// compare returns Healthy if a live Deployment has the desired spec. Otherwise it returns its state and the reason.
func (s Source) compare(entry *v1alpha1.StrategyDeploymentSpec, live *appsv1.Deployment) (State, string) {
	if problem := s.annotationProblem(live); problem != "" {
		return Outdated, problem
	}
	hash := live.Labels[labelSpecHash]
	if hash == "" {
		return Outdated, fmt.Sprintf("deployment %s doesn't have a spec hash, update it", live.Name)
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

// annotationProblem returns a message about the first annotation of the CSV, by key, that is missing or different in
// the Pod template. It is empty if there is none.
func (s Source) annotationProblem(d *appsv1.Deployment) string {
	have, want := d.Spec.Template.Annotations, s.CSV.Annotations
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, ok := have[key]
		switch {
		case !s.copies(key):
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
