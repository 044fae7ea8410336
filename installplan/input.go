// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// Input is everything that Reconcile looks at. It writes to none of it. Gather fills all but Now, LastRun,
// CustomResources, RBACChanged, Unpacked and Checkpoint. The order of lists does not matter. A plan whose steps are looked at
// needs every list from OperatorGroups to CatalogSources but Alongside; others may be left unread, as Gather does.
type Input struct {
	// Now is the instant of this reconcile. Required.
	Now time.Time
	// InstallPlan is the plan. Required.
	InstallPlan *v1alpha1.InstallPlan
	// Namespace is the plan's namespace, one item at most; one that was not read counts as not being deleted.
	Namespace olmcore.Observed[*corev1.Namespace]
	// Subscriptions of the plan's namespace, at least those that have to do with the plan. Required.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	// OperatorGroups of the plan's namespace, all of them.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// ClusterServiceVersions of the plan's namespace, copies too: at least those that its steps describe, resolve to or
	// name as owners, and that its CustomResourceDefinitions record. All of them when spec leaves one of its steps out,
	// when a definition converts by webhook, or when the plan has failed.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// CustomResourceDefinitions that the plan's steps describe, and those that define the kinds of its other steps.
	CustomResourceDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// APIServices contains all APIServices except those that the API server creates for CustomResourceDefinitions. They are gathered
	// only if a step may add a version to an API group: a step for a definition that does not exist or, if the plan runs as a
	// ServiceAccount, any open step for a definition. Such a step waits if the APIServices were not read.
	APIServices olmcore.Observed[*apiregistrationv1.APIService]
	// Alongside holds ClusterServiceVersions of other namespaces that the CustomResourceDefinitions of the plan's steps
	// name as installed alongside.
	Alongside olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Announced are ClusterServiceVersions of other namespaces that these definitions name, too, that do not exist, and
	// that an InstallPlan in progress is to make.
	Announced []types.NamespacedName
	// Objects are the objects of all other steps that exist.
	Objects olmcore.Observed[olmcore.Object]
	// ConfigMaps are those that the plan's steps refer to for their manifests, of a plan that is being deleted, too.
	ConfigMaps olmcore.Observed[*corev1.ConfigMap]
	// PullSecrets are the Secrets of Config.OLMNamespace that Secret steps copy.
	PullSecrets olmcore.Observed[*corev1.Secret]
	// CatalogSources of Config.OLMNamespace: only a Secret that one of them lists is copied. Needed, and gathered, only
	// with PullSecrets.
	CatalogSources olmcore.Observed[*v1alpha1.CatalogSource]
	// ServiceAccount is the one that the plan's attenuatedServiceAccountRef names; nil when it does not exist.
	ServiceAccount *corev1.ServiceAccount
	// RelatedPlans are the other InstallPlans of the plan's namespace that contain a package of the plan. Plans with a common
	// package run one after the other. Gathered only for a plan that has steps and may still run.
	RelatedPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// OtherPlans are all other InstallPlans, of all namespaces, that need one of ConfigMaps; where they were not read, a
	// deleted plan leaves its bundles to package sweep. Looked at, and gathered, only for a plan with ConfigMaps that is being deleted.
	OtherPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// CustomResources are the custom resources whose validity a new schema would change, as judged by the caller: the
	// answer to Outcome.SchemaChanges. Where it is not complete, nothing is refused on their behalf.
	CustomResources olmcore.Observed[ResourceVerdict]
	// LastRun is what became of the last actions. Optional.
	LastRun olmcore.LastResults
	// RBACChanged: a Role, RoleBinding or ServiceAccount of the namespace changed since the plan failed. Optional.
	RBACChanged bool
	Config      Config
	// Unpacked is Outcome.Unpacked of an earlier call for this plan; nil is always right.
	Unpacked *Memory
	// Checkpoint is Outcome.Checkpoint of an earlier call for this plan; nil is always right.
	Checkpoint *olmcore.Checkpoint
}

// Memory is what a call made of the unpacked bundles that a plan refers to. It is opaque, bounded, and may be lost.
type Memory = step.Memory

// ResourceVerdict is the judgement of one custom resource: Old and New are what the schema of Version finds wrong before
// and after the change. One that finds nothing wrong may be left out. ReadError, when set, says instead that the resources
// of Version could not be read, and refuses the change; Unread, when positive, how many of them were not judged.
type ResourceVerdict struct {
	CustomResourceDefinition, Version string
	Namespace, Name                   string
	Old, New                          []string
	ReadError                         string
	Unread                            int
}

// SchemaChange asks for the judgement of custom resources: a step gives a CustomResourceDefinition other schemas.
type SchemaChange struct {
	// Before is the definition as it exists, After the one of the step.
	Before, After *apiextensionsv1.CustomResourceDefinition
	// Versions are those whose custom resources must be judged, sorted: served before and after, by schemas that differ.
	Versions []string
}

// cover hands to a Checkpoint what the decision depends on: of a plan that is Complete the plan, its namespace and its
// Subscriptions alone.
func (in *Input) cover(c olmcore.Coverage) olmcore.Coverage {
	olmcore.CoverObject(&c, in.InstallPlan)
	olmcore.CoverObjects(&c, in.Namespace)
	olmcore.CoverObjects(&c, in.Subscriptions)
	olmcore.CoverFunc(&c, in.Config, Config.Equal)
	if in.InstallPlan == nil || in.isComplete() {
		return c
	}
	olmcore.CoverObjects(&c, in.OperatorGroups)
	olmcore.CoverObjects(&c, in.ClusterServiceVersions)
	olmcore.CoverObjects(&c, in.CustomResourceDefinitions)
	olmcore.CoverObjects(&c, in.APIServices)
	olmcore.CoverObjects(&c, in.Alongside)
	olmcore.CoverValues(&c, in.Announced)
	olmcore.CoverObjects(&c, in.Objects)
	olmcore.CoverObjects(&c, in.ConfigMaps)
	olmcore.CoverObjects(&c, in.PullSecrets)
	olmcore.CoverObjects(&c, in.CatalogSources)
	olmcore.CoverObject(&c, in.ServiceAccount)
	olmcore.CoverObjects(&c, in.RelatedPlans)
	olmcore.CoverObjects(&c, in.OtherPlans)
	olmcore.CoverFunc(&c, in.CustomResources, func(a, b olmcore.Observed[ResourceVerdict]) bool { return apiequality.Semantic.DeepEqual(a, b) })
	olmcore.CoverMap(&c, in.LastRun)
	olmcore.CoverValue(&c, in.RBACChanged)
	return c
}

// isComplete reports that the plan is Complete and stays: nothing but its relations will ever be looked at.
func (in *Input) isComplete() bool {
	plan := in.InstallPlan
	return plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete && plan.DeletionTimestamp == nil && !input.Terminating(in.Namespace)
}

func (in *Input) validate() error {
	plan := in.InstallPlan
	switch {
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case plan == nil:
		return &olmcore.InputError{Field: "InstallPlan", Problem: "is nil"}
	case plan.Name == "":
		return &olmcore.InputError{Field: "InstallPlan.metadata.name", Problem: "is empty"}
	case plan.Namespace == "":
		return &olmcore.InputError{Field: "InstallPlan.metadata.namespace", Problem: "is empty"}
	case !in.Subscriptions.Complete:
		return notRead("Subscriptions")
	}
	here := olmcore.InNamespace(plan.Namespace)
	err := cmp.Or(
		olmcore.ValidateList("Namespace", in.Namespace, func(o olmcore.Object) (field, problem string) {
			if o.GetName() == plan.Namespace {
				return "", ""
			}
			return ".metadata.name", fmt.Sprintf("is %q, but the plan's namespace is %q", o.GetName(), plan.Namespace)
		}),
		olmcore.ValidateList("Subscriptions", in.Subscriptions, here),
		in.Config.Validate(),
	)
	if err != nil || in.isComplete() {
		return err
	}
	if err := cmp.Or(
		olmcore.ValidateList("OperatorGroups", in.OperatorGroups, here),
		olmcore.ValidateList("ClusterServiceVersions", in.ClusterServiceVersions, here),
		olmcore.ValidateList("CustomResourceDefinitions", in.CustomResourceDefinitions),
		olmcore.ValidateList("APIServices", in.APIServices),
		olmcore.ValidateList("Alongside", in.Alongside),
		olmcore.ValidateList("ConfigMaps", in.ConfigMaps),
		olmcore.ValidateList("PullSecrets", in.PullSecrets),
		olmcore.ValidateList("CatalogSources", in.CatalogSources),
		olmcore.ValidateList("RelatedPlans", in.RelatedPlans, here),
		olmcore.ValidateList("OtherPlans", in.OtherPlans),
		in.validateObjects(),
	); err != nil {
		return err
	}
	if unread := in.unread(); in.looksAtSteps() && unread != "" {
		return notRead(unread)
	}
	return nil
}

func notRead(field string) error { return &olmcore.InputError{Field: field, Problem: "was not read"} }

// validateObjects is olmcore.ValidateList for objects of several kinds.
func (in *Input) validateObjects() error {
	if !in.Objects.Complete && len(in.Objects.Items) > 0 {
		return &olmcore.InputError{Field: "Objects", Problem: "has items of a read that was not completed"}
	}
	seen := make(map[olmcore.Key]bool, len(in.Objects.Items))
	for i, o := range in.Objects.Items {
		key, problem := olmcore.KeyOf(o), ""
		if key == (olmcore.Key{}) {
			problem = "is nil or has no kind"
		} else if seen[key] {
			problem = "repeats " + key.String()
		}
		if problem != "" {
			return &olmcore.InputError{Field: fmt.Sprintf("Objects[%d]", i), Problem: problem}
		}
		seen[key] = true
	}
	return nil
}

// unread names a list that steps are judged by and that was not read; empty for none.
func (in *Input) unread() string {
	switch {
	case !in.RelatedPlans.Complete:
		return "RelatedPlans"
	case !in.OperatorGroups.Complete:
		return "OperatorGroups"
	case !in.ClusterServiceVersions.Complete:
		return "ClusterServiceVersions"
	case !in.CustomResourceDefinitions.Complete:
		return "CustomResourceDefinitions"
	case !in.Objects.Complete:
		return "Objects"
	case !in.ConfigMaps.Complete:
		return "ConfigMaps"
	case !in.PullSecrets.Complete:
		return "PullSecrets"
	case !in.CatalogSources.Complete && len(in.PullSecrets.Items) > 0 && !in.Config.CopyAnySecret:
		return "CatalogSources"
	}
	return ""
}
