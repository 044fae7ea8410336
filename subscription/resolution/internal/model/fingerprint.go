// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strconv"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// Fingerprint returns a digest of the input. Resolve returns the same Result for two inputs if their fingerprints,
// Subscriptions, InstallPlans and caller-set fields are the same.
//
// The digest covers OperatorGroups, existing ClusterServiceVersions, catalogs, version ranges, and the Subscriptions
// whose InstallPlan failed. It also covers the packages that Subscriptions name, and the packages that may meet a
// requirement directly or indirectly. A change of another package usually does not change the digest.
//
// A caller that passes a Result to package subscription should store the fingerprint with the Result, and should
// discard the Result when the fingerprint changes. For example, the fingerprint changes when the predecessor of an
// upgrade is removed, or when an InstallPlan fails.
func (in *Input) Fingerprint() string {
	d := content.Digester{}
	for _, g := range in.OperatorGroups {
		if g != nil && g.Namespace == in.Namespace {
			d.Begin("group", g.Name, string(g.UID), string(g.Spec.UpgradeStrategy), g.Annotations[exclusionAnnotation])
			d.Texts(g.Status.Namespaces...)
			d.End()
		}
	}
	for _, s := range in.Subscriptions {
		if text, held := versionRangeOf(s, in.Namespace); held {
			d.Begin("version-range", s.Name, text)
			d.End()
		}
	}
	for _, s := range in.Subscriptions {
		if s != nil && s.Namespace == in.Namespace && s.Status.GetCondition(v1alpha1.SubscriptionInstallPlanFailed).Status == corev1.ConditionTrue {
			d.Begin("plan-failed", s.Name)
			d.End()
		}
	}
	for _, pin := range in.Pins {
		d.Begin("pin", pin.Subscription, pin.Range)
		d.End()
	}
	for _, c := range in.CSVs {
		if c != nil && c.Namespace == in.Namespace && !isCopied(c) {
			csv(&d, c)
		}
	}
	count := map[types.NamespacedName]int{}
	for i := range in.Catalogs {
		count[in.Catalogs[i].Key]++
	}
	for i := range in.Catalogs {
		c := &in.Catalogs[i]
		d.Begin("catalog", c.Key.Namespace, c.Key.Name, strconv.Itoa(c.Priority), strconv.FormatBool(c.Content != nil), strconv.FormatBool(c.Content.IsEmpty()), strconv.FormatBool(c.Stale), c.Problem)
		if count[c.Key] > 1 { // which of them counts depends on it
			d.Texts(c.Content.Digest())
		}
		d.End()
	}
	reached(Read(in)).digest(&d)
	return d.Sum()
}

// versionRangeOf returns the version range of a Subscription, whose generation does not change with it.
func versionRangeOf(s *v1alpha1.Subscription, namespace string) (text string, held bool) {
	if s == nil || s.Namespace != namespace {
		return "", false
	}
	text, held = s.Annotations[AnnotationVersionRange]
	return text, held
}

// csv takes in what resolution reads of an existing ClusterServiceVersion.
func csv(d *content.Digester, c *v1alpha1.ClusterServiceVersion) {
	text, annotated := c.Annotations[olmcore.AnnotationProperties]
	d.Begin("csv", c.Name, string(c.UID), string(c.Status.Phase), strconv.FormatBool(olmcore.NeverInstalled(c)),
		strconv.FormatBool(c.DeletionTimestamp != nil), c.Spec.Replaces, c.Spec.Version.String(), strconv.FormatBool(annotated), text)
	for _, list := range [...][]v1alpha1.CRDDescription{c.Spec.CustomResourceDefinitions.Owned, c.Spec.CustomResourceDefinitions.Required} {
		d.Texts(strconv.Itoa(len(list)))
		for _, x := range list {
			d.Texts(x.Name, x.Version, x.Kind)
		}
	}
	for _, list := range [...][]v1alpha1.APIServiceDescription{c.Spec.APIServiceDefinitions.Owned, c.Spec.APIServiceDefinitions.Required} {
		d.Texts(strconv.Itoa(len(list)))
		for _, x := range list {
			d.Texts(x.Group, x.Version, x.Kind)
		}
	}
	d.End()
}
