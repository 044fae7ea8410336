// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Input is everything that Reconcile looks at. It writes to none of it. Each
// field holds the answer of a completed read; Gather fills all but Now, LastRun
// and RBACChanged. The order of the slices does not matter, nil entries are
// ignored.
type Input struct {
	// Now is the instant of this reconcile. Required.
	Now time.Time
	// InstallPlan is the plan. Required.
	InstallPlan *v1alpha1.InstallPlan
	// Namespace is the plan's namespace; nil when there is none, or nobody looked.
	Namespace *corev1.Namespace
	// Subscriptions of the plan's namespace, all of them.
	Subscriptions []*v1alpha1.Subscription
	// OperatorGroups of the plan's namespace, all of them. This and what follows
	// is not looked at for a plan that is Complete.
	OperatorGroups []*operatorsv1.OperatorGroup
	// ClusterServiceVersions of the plan's namespace, copies too: at least those
	// that its steps describe, resolve to or name as owners, and that its
	// CustomResourceDefinitions record. All of them when spec leaves one of its
	// steps out, or when a definition converts by webhook.
	ClusterServiceVersions []*v1alpha1.ClusterServiceVersion
	// Alongside holds ClusterServiceVersions of other namespaces that the
	// CustomResourceDefinitions of the plan's steps name as installed alongside.
	Alongside []*v1alpha1.ClusterServiceVersion
	// Announced are ClusterServiceVersions of other namespaces that these definitions
	// name, too, that do not exist, and that an InstallPlan in progress is to make.
	Announced []types.NamespacedName
	// CustomResourceDefinitions that the plan's steps describe, and those that
	// define the kinds of its other steps.
	CustomResourceDefinitions []*apiextensionsv1.CustomResourceDefinition
	// CustomResources are the custom resources whose validity a new schema would
	// change, as judged by the caller; see SchemaChanges. Empty when nobody judged.
	CustomResources []ResourceVerdict
	// Objects are the objects of all other steps that exist.
	Objects []olmcore.Object
	// ConfigMaps are those that the plan's steps refer to for their manifests.
	ConfigMaps []*corev1.ConfigMap
	// OtherPlans are all other InstallPlans, of all namespaces; where they were not
	// read, a deleted plan leaves its bundles to Sweep. Looked at, and
	// gathered, only for a plan with such ConfigMaps that is being deleted.
	OtherPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// PullSecrets are the Secrets of Config.OLMNamespace that Secret steps copy.
	PullSecrets []*corev1.Secret
	// CatalogSources of Config.OLMNamespace: only a Secret that one of them lists is
	// copied. Needed, and gathered, only with PullSecrets.
	CatalogSources []*v1alpha1.CatalogSource
	// ServiceAccount is the one that the plan's attenuatedServiceAccountRef names;
	// nil when it does not exist.
	ServiceAccount *corev1.ServiceAccount
	// LastRun is what became of the last actions. Optional.
	LastRun olmcore.LastResults
	// RBACChanged: a Role, RoleBinding or ServiceAccount of the namespace changed
	// since the plan failed. Optional.
	RBACChanged bool
	Config      Config
}

// ResourceVerdict is the judgement of one custom resource: Old and New are what
// the schema of Version finds wrong before and after the change. One that finds
// nothing wrong may be left out. ReadError, when set, says instead that the
// resources of Version could not be read, and refuses the change; Unread, when
// positive, how many of them nobody judged.
type ResourceVerdict struct {
	CustomResourceDefinition, Version string
	Namespace, Name                   string
	Old, New                          []string
	ReadError                         string
	Unread                            int
}

func (in *Input) validate() error {
	if in.Now.IsZero() {
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	plan := in.InstallPlan
	switch {
	case plan == nil:
		return &olmcore.InputError{Field: "InstallPlan", Problem: "is nil"}
	case plan.Name == "":
		return &olmcore.InputError{Field: "InstallPlan.metadata.name", Problem: "is empty"}
	case plan.Namespace == "":
		return &olmcore.InputError{Field: "InstallPlan.metadata.namespace", Problem: "is empty"}
	}
	if ns := in.Namespace; ns != nil && ns.Name != plan.Namespace {
		return &olmcore.InputError{Field: "Namespace.metadata.name", Problem: fmt.Sprintf("is %q, but the plan's namespace is %q", ns.Name, plan.Namespace)}
	}
	for i, s := range in.Subscriptions {
		if s != nil && s.Namespace != plan.Namespace {
			return foreign("Subscriptions", i, s.Namespace, plan.Namespace)
		}
	}
	return in.Config.Validate()
}

// validateDeep checks what only a plan that has something to do looks at.
func (in *Input) validateDeep() error {
	namespace := in.InstallPlan.Namespace
	for i, g := range in.OperatorGroups {
		if g != nil && g.Namespace != namespace {
			return foreign("OperatorGroups", i, g.Namespace, namespace)
		}
	}
	for i, c := range in.ClusterServiceVersions {
		if c != nil && c.Namespace != namespace {
			return foreign("ClusterServiceVersions", i, c.Namespace, namespace)
		}
	}
	return nil
}

func foreign(field string, i int, have, want string) error {
	return &olmcore.InputError{
		Field:   fmt.Sprintf("%s[%d].metadata.namespace", field, i),
		Problem: fmt.Sprintf("is %q, but the plan's is %q", have, want),
	}
}
