// SPDX-License-Identifier: Apache-2.0

// Package deployment computes the Deployments of a ClusterServiceVersion, compares them with the live ones, and says
// what installs them and how they fare.
package deployment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

const (
	// labelSpecHash is OLM's label with the hash of the spec that a Deployment was made with: the live spec is full of
	// the API server's defaults.
	labelSpecHash = "olm.deployment-spec-hash"
	// annotationCAHash is on Pod templates that serving certificates were put into.
	annotationCAHash = "olmcahash"

	operatorConditionEnv = "OPERATOR_CONDITION_NAME"
)

// Source is what the Deployments of a CSV are made from.
type Source struct {
	CSV *owned.CSV
	// Config is the spec.config that applies, nil for none.
	Config *v1alpha1.SubscriptionConfig
	// ProxyEnv and ExcludedAnnotations are those of csv.Config.
	ProxyEnv            []corev1.EnvVar
	ExcludedAnnotations []string
}

// ConfigOf returns the spec.config that applies to a CSV, as subscription.EffectiveConfig does: that of the
// Subscription that has it installed, else of one that is about to; of several of the oldest, then the first by name.
// Nil when there is none.
func ConfigOf(c *owned.CSV, subscriptions []*v1alpha1.Subscription) *v1alpha1.SubscriptionConfig {
	var best *v1alpha1.Subscription
	for _, s := range subscriptions {
		if owned.IsInstalledBy(c, s) && (best == nil || comesBefore(c, s, best)) {
			best = s
		}
	}
	if best == nil || best.Spec == nil {
		return nil
	}
	return best.Spec.Config
}

func comesBefore(c *owned.CSV, a, b *v1alpha1.Subscription) bool {
	if installs := a.Status.InstalledCSV == c.Name; installs != (b.Status.InstalledCSV == c.Name) {
		return installs
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

// annotations are those of the CSV that its Pod templates get.
func (s Source) annotations() map[string]string {
	kept := maps.Clone(s.CSV.Annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool { return slices.Contains(s.ExcludedAnnotations, key) })
	return kept
}

// desired returns the Deployment for an entry of the install strategy. Its spec and the hash of it are those of OLM, bit
// for bit. The error is that of the hash.
//
// Source: operator-lifecycle-manager pkg/controller/install/deployment.go.
func (s Source) desired(entry *v1alpha1.StrategyDeploymentSpec, o overlay) (*appsv1.Deployment, error) {
	labels := map[string]string{}
	maps.Copy(labels, entry.Label)
	maps.Copy(labels, owned.By(s.CSV).Labels())
	labels[olmcore.LabelManaged] = "true"
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Name: entry.Name, Namespace: s.CSV.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(s.CSV)},
		},
	}
	entry.Spec.DeepCopyInto(&d.Spec)
	for key, value := range s.annotations() {
		metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, key, value)
	}
	if s.Config != nil || len(s.ProxyEnv) > 0 {
		o.applyConfig(d, s.Config, s.ProxyEnv)
	}
	for i := range d.Spec.Template.Spec.Containers {
		container := &d.Spec.Template.Spec.Containers[i]
		container.Env = merge(o, container.Env, []corev1.EnvVar{{Name: operatorConditionEnv, Value: s.CSV.Name}}, envName)
	}
	d.Spec.RevisionHistoryLimit = new(int32(1))
	hash, err := olmcore.Hash(d.Spec)
	if err != nil {
		return nil, fmt.Errorf("hash of deployment %s: %w", entry.Name, err)
	}
	labels[labelSpecHash] = hash
	return d, nil
}

// isCurrent reports whether a hash label is that of the desired Deployment, or what OLM would have written for the same
// CSV and configuration: adopting a cluster restarts nothing.
func (s Source) isCurrent(entry *v1alpha1.StrategyDeploymentSpec, want *appsv1.Deployment, hash string) bool {
	if want.Labels[labelSpecHash] == hash {
		return true
	}
	for _, o := range [...]overlay{asOLM, asOLMDetached} {
		if other, err := s.desired(entry, o); err == nil && other.Labels[labelSpecHash] == hash {
			return true
		}
	}
	return false
}

// hasOLMCertificates reports whether a Deployment serves webhooks or APIServices with certificates that OLM put into
// it. They are not installed here, so that the hash of such a spec cannot be told and the Deployment is left alone.
func (s Source) hasOLMCertificates(live *appsv1.Deployment) bool {
	serves := slices.ContainsFunc(s.CSV.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool { return w.DeploymentName == live.Name }) ||
		slices.ContainsFunc(s.CSV.Spec.APIServiceDefinitions.Owned, func(d v1alpha1.APIServiceDescription) bool { return d.DeploymentName == live.Name })
	return serves && live.Spec.Template.Annotations[annotationCAHash] != ""
}
