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
// CustomResources, RBACChanged, Unpacked and Checkpoint. The order of lists does not matter. A plan whose steps are
// looked at needs every list from OperatorGroups to CatalogSources but Alongside; others may be left unread, as Gather
// does.
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
	// APIServices contains all APIServices except those that the API server creates for CustomResourceDefinitions. They
	// are gathered only if a step may add a version to an API group: a step for a definition that does not exist or, if
	// the plan runs as a ServiceAccount, any open step for a definition. Such a step waits if the APIServices were not
	// read.
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
	// RelatedPlans are the other InstallPlans of the plan's namespace that contain a package of the plan. Plans with a
	// common package run one after the other. Gathered only for a plan that has steps and may still run.
	RelatedPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// OtherPlans are all other InstallPlans, of all namespaces, that need one of ConfigMaps; where they were not read, a
	// deleted plan leaves its bundles to package sweep. Looked at, and gathered, only for a plan with ConfigMaps that is
	// being deleted.
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

// ResourceVerdict is the judgement of one custom resource: Old and New are what the schema of Version finds wrong
// before and after the change. One that finds nothing wrong may be left out. ReadError, when set, says instead that the
// resources of Version could not be read, and refuses the change; Unread, when positive, how many of them were not
// judged.
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

// lists names the lists that every plan needs.
func (in *Input) lists(v *olmcore.ListVisit) {
	namespace := in.InstallPlan.Namespace
	olmcore.VisitList(v, "Namespace", &in.Namespace, olmcore.Optional, named(namespace))
	olmcore.VisitList(v, "Subscriptions", &in.Subscriptions, olmcore.Required, olmcore.InNamespace(namespace))
}

// stepLists names the lists without which steps cannot be evaluated. They need not be read for other plans.
func (in *Input) stepLists(v *olmcore.ListVisit) {
	here := olmcore.InNamespace(in.InstallPlan.Namespace)
	olmcore.VisitList(v, "RelatedPlans", &in.RelatedPlans, olmcore.Optional, here)
	olmcore.VisitList(v, "OperatorGroups", &in.OperatorGroups, olmcore.Optional, here)
	olmcore.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, olmcore.Optional, here)
	olmcore.VisitList(v, "CustomResourceDefinitions", &in.CustomResourceDefinitions, olmcore.Optional)
	olmcore.VisitObjects(v, "Objects", &in.Objects, olmcore.Optional)
	olmcore.VisitList(v, "ConfigMaps", &in.ConfigMaps, olmcore.Optional)
	olmcore.VisitList(v, "PullSecrets", &in.PullSecrets, olmcore.Optional)
}

// otherLists names the lists that only some plans need.
func (in *Input) otherLists(v *olmcore.ListVisit) {
	olmcore.VisitList(v, "APIServices", &in.APIServices, olmcore.Optional)
	olmcore.VisitList(v, "Alongside", &in.Alongside, olmcore.Optional)
	olmcore.VisitList(v, "CatalogSources", &in.CatalogSources, olmcore.Optional)
	olmcore.VisitList(v, "OtherPlans", &in.OtherPlans, olmcore.Optional)
}

// named returns the Check that a Namespace is the one of the plan.
func named(namespace string) olmcore.Check {
	return func(o olmcore.Object) (field, problem string) {
		if o.GetName() == namespace {
			return "", ""
		}
		return ".metadata.name", fmt.Sprintf("is %q, but the plan's namespace is %q", o.GetName(), namespace)
	}
}

// cover adds to a Coverage everything on which the decision depends. The decision about a plan that is Complete depends
// on the plan, its namespace and its Subscriptions only.
func (in *Input) cover(c olmcore.Coverage) olmcore.Coverage {
	olmcore.CoverObject(&c, in.InstallPlan)
	olmcore.CoverFunc(&c, in.Config, Config.Equal)
	if in.InstallPlan == nil {
		return c
	}
	v := olmcore.CoverLists(c)
	in.lists(&v)
	if in.isComplete() {
		return v.Coverage()
	}
	in.stepLists(&v)
	in.otherLists(&v)
	c = v.Coverage()
	olmcore.CoverValues(&c, in.Announced)
	olmcore.CoverObject(&c, in.ServiceAccount)
	olmcore.CoverFunc(&c, in.CustomResources, sameVerdicts)
	olmcore.CoverMap(&c, in.LastRun)
	olmcore.CoverValue(&c, in.RBACChanged)
	return c
}

func sameVerdicts(a, b olmcore.Observed[ResourceVerdict]) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}

// isComplete reports whether the plan is Complete and stays so. Then nothing but its relations matters.
func (in *Input) isComplete() bool {
	plan := in.InstallPlan
	return plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete && plan.DeletionTimestamp == nil && !input.Terminating(in.Namespace)
}

// validate returns an *olmcore.InputError if the Input breaks its contract.
func (in *Input) validate() error {
	if err := in.validatePlan(); err != nil {
		return err
	}
	v := olmcore.ValidateLists()
	in.lists(&v)
	err := cmp.Or(v.Err(), in.Config.Validate())
	if err != nil || in.isComplete() {
		return err
	}
	in.stepLists(&v)
	in.otherLists(&v)
	err = v.Err()
	if err != nil || !in.looksAtSteps() {
		return err
	}
	if field := in.unreadForSteps(); field != "" {
		return &olmcore.InputError{Field: field, Problem: "were not read"}
	}
	return nil
}

func (in *Input) validatePlan() error {
	problem := func(field, problem string) error { return &olmcore.InputError{Field: field, Problem: problem} }
	switch plan := in.InstallPlan; {
	case in.Now.IsZero():
		return problem("Now", "is zero")
	case plan == nil:
		return problem("InstallPlan", "is nil")
	case plan.Name == "":
		return problem("InstallPlan.metadata.name", "is empty")
	case plan.Namespace == "":
		return problem("InstallPlan.metadata.namespace", "is empty")
	}
	return nil
}

// unreadForSteps returns the name of a list that was not read and without which steps cannot be evaluated, "" for none.
func (in *Input) unreadForSteps() string {
	v := olmcore.UnreadLists()
	in.stepLists(&v)
	needsCatalogs := len(in.PullSecrets.Items) > 0 && !in.Config.CopyAnySecret
	switch {
	case len(v.Unread()) > 0:
		return v.Unread()[0]
	case needsCatalogs && !in.CatalogSources.Complete:
		return "CatalogSources"
	}
	return ""
}
