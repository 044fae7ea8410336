// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

const (
	labelSpecHash = "olm.deployment-spec-hash"
	// annotationCAHash is on Pod templates that serving certificates were put into.
	annotationCAHash = "olmcahash"
	// annotationInstalledFrom, behind the key prefix, is ours: what a Deployment was
	// made from. It spares a converged pass the hash of the whole spec.
	annotationInstalledFrom = "installed-from"

	operatorConditionEnv = "OPERATOR_CONDITION_NAME"
)

// ownerOf are the owner labels of what belongs to a CSV.
func ownerOf(c *version) olmcore.Owner {
	return olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: c.Namespace, Name: c.Name}
}

// desiredDeployment is the Deployment for entry i of the install strategy. Its
// spec and the hash of it are those of OLM, bit for bit.
//
// Source: operator-lifecycle-manager pkg/controller/install/deployment.go.
func desiredDeployment(in *Input, i int) (*appsv1.Deployment, error) {
	return deploymentLaid(in, i, asMeant)
}

// isCurrentHash reports whether a hash label is that of the desired Deployment, or
// what OLM would have written for the same CSV and configuration: adopting a
// cluster restarts nothing.
func isCurrentHash(in *Input, i int, want *appsv1.Deployment, hash string) bool {
	if want.Labels[labelSpecHash] == hash {
		return true
	}
	for _, o := range [...]overlay{asOLM, asOLMDetached} {
		if other, err := deploymentLaid(in, i, o); err == nil && other.Labels[labelSpecHash] == hash {
			return true
		}
	}
	return false
}

func deploymentLaid(in *Input, i int, o overlay) (*appsv1.Deployment, error) {
	c := in.ClusterServiceVersion
	entry := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i]
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Name: entry.Name, Namespace: c.Namespace,
			Labels:          ownerOf(c).Labels(),
			OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(c)},
		},
	}
	for key, value := range entry.Label {
		if _, taken := d.Labels[key]; !taken {
			d.Labels[key] = value
		}
	}
	d.Labels[olmcore.LabelManaged] = "true"
	entry.Spec.DeepCopyInto(&d.Spec)
	marks := uint64(0)
	for key, value := range c.Annotations {
		marks += mark(key)
		if !slices.Contains(in.Config.ExcludedAnnotations, key) {
			setAnnotation(&d.Spec.Template.ObjectMeta, key, value)
		}
	}
	if sub := subscriptionOf(in); sub != nil {
		o.applyConfig(d, sub.Spec.Config, in.Config.ProxyEnv)
	} else if len(in.Config.ProxyEnv) > 0 {
		o.applyConfig(d, &v1alpha1.SubscriptionConfig{}, in.Config.ProxyEnv)
	}
	for k := range d.Spec.Template.Spec.Containers {
		container := &d.Spec.Template.Spec.Containers[k]
		container.Env = o.mergeEnv(container.Env, []corev1.EnvVar{{Name: operatorConditionEnv, Value: c.Name}})
	}
	d.Spec.RevisionHistoryLimit = new(int32(1))
	hash, err := olmcore.Hash(d.Spec)
	if err != nil {
		return nil, fmt.Errorf("hash of deployment %s: %w", entry.Name, err)
	}
	d.Labels[labelSpecHash] = hash
	setAnnotation(&d.ObjectMeta, installedFromKey(in), newOrigin(in, marks).String()+hash)
	return d, nil
}

// incarnationOf is the owner that only this very CSV is, not another one of its
// name.
func incarnationOf(c *version) olmcore.Owner {
	owner := ownerOf(c)
	owner.UID = c.UID
	return owner
}

// labelComponents puts the component labels of a CSV on an object that is made for it: in
// this write, so that no other one has to bring them. What exists already is package
// subscription's.
func labelComponents(o olmcore.Object, c *version) {
	add := map[string]string{}
	for key, value := range c.Labels {
		if strings.HasPrefix(key, olmcore.ComponentLabelPrefix) {
			add[key] = value
		}
	}
	if labels, changed := olmcore.MergeLabels(o.GetLabels(), add); changed {
		o.SetLabels(labels)
	}
}

func setAnnotation(m *metav1.ObjectMeta, key, value string) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[key] = value
}

// subscriptionOf returns the Subscription whose spec.config applies, as
// subscription.EffectiveConfig does: the one that has the CSV installed, else one
// that is about to; of several the oldest, then the first by name. Nil when there
// is none, or it has no config.
func subscriptionOf(in *Input) *v1alpha1.Subscription {
	var best *v1alpha1.Subscription
	for _, s := range in.Subscriptions.Items {
		if isInstalledBy(in.ClusterServiceVersion, s) && (best == nil || countsBefore(in.ClusterServiceVersion, s, best)) {
			best = s
		}
	}
	if best == nil || best.Spec == nil || best.Spec.Config == nil {
		return nil
	}
	return best
}

func countsBefore(c *version, a, b *v1alpha1.Subscription) bool {
	if installs := a.Status.InstalledCSV == c.Name; installs != (b.Status.InstalledCSV == c.Name) {
		return installs
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

func isInstalledBy(c *version, s *v1alpha1.Subscription) bool {
	return s.Namespace == c.Namespace && (s.Status.InstalledCSV == c.Name || s.Status.CurrentCSV == c.Name)
}

// origin is what determines a desired Deployment, in a form that is cheap to
// compare: identities and generations in place of content.
type origin struct {
	csv, subscription                     string
	csvGeneration, subscriptionGeneration int64
	// annotations and config are hashes of what has no generation.
	annotations, config uint64
}

// newOrigin takes the sum of the marks of the CSV's annotation keys: their values
// are compared with those on the Pod template one by one; what is left to notice
// is that an annotation went away.
func newOrigin(in *Input, annotations uint64) origin {
	c := in.ClusterServiceVersion
	o := origin{csv: string(c.UID), csvGeneration: c.Generation, annotations: annotations}
	if s := subscriptionOf(in); s != nil {
		o.subscription, o.subscriptionGeneration = string(s.UID), s.Generation
	}
	for _, key := range in.Config.ExcludedAnnotations {
		o.config += fnv64(fnv64Offset, key)
	}
	for i := range in.Config.ProxyEnv {
		e := &in.Config.ProxyEnv[i]
		o.config = fnv64(fnv64(o.config^fnv64Offset, e.Name), e.Value)
	}
	return o
}

// mark is a hash that reads eight bytes at a time.
func mark(s string) uint64 {
	h := uint64(len(s)) * fnv64Prime
	for ; len(s) >= 8; s = s[8:] {
		h ^= uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h *= fnv64Prime
		h ^= h >> 32
	}
	return fnv64(h, s)
}

// String is the part of the annotation before the hash, with a slash at its end.
func (o origin) String() string { return string(o.append(nil)) }

func (o origin) append(to []byte) []byte {
	to = append(append(to, o.csv...), '/')
	to = append(strconv.AppendInt(to, o.csvGeneration, 10), '/')
	to = append(strconv.AppendUint(to, o.annotations, 16), '/')
	to = append(append(to, o.subscription...), '/')
	to = append(strconv.AppendInt(to, o.subscriptionGeneration, 10), '/')
	return append(strconv.AppendUint(to, o.config, 16), '/')
}

// isTelling reports whether the objects have generations; without one they may
// change unnoticed.
func (o origin) isTelling() bool {
	return o.csvGeneration != 0 && (o.subscription == "" || o.subscriptionGeneration != 0)
}

// matches reports whether an annotation was written for this origin and this
// hash of the spec.
func (o origin) matches(s, hash string) bool {
	if !o.isTelling() {
		return false
	}
	var room [192]byte
	prefix := o.append(room[:0])
	return len(s) == len(prefix)+len(hash) && s[:len(prefix)] == string(prefix) && s[len(prefix):] == hash
}

func installedFromKey(in *Input) string {
	if in.Config.KeyPrefix == "" {
		return olmcore.KeyPrefix + annotationInstalledFrom
	}
	return in.Config.KeyPrefix + annotationInstalledFrom
}

const fnv64Offset, fnv64Prime = 14695981039346656037, 1099511628211

// fnv64 continues the 64-bit FNV-1a hash that OLM uses in label keys.
func fnv64(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnv64Prime
	}
	return h
}
