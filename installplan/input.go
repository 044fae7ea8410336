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

	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains everything that Reconcile reads. Reconcile does not change it. Gather sets all fields except Now,
// LastRun, CustomResources, RBACChanged, Unpacked and Checkpoint. The order of lists does not matter. A plan whose
// steps are evaluated needs RelatedPlans, OperatorGroups, ClusterServiceVersions, CustomResourceDefinitions, Objects,
// ConfigMaps and PullSecrets. Other lists may be unread if their comment allows it.
type Input struct {
	// Now is the time of this call. Required.
	Now time.Time
	// InstallPlan is the plan. Required.
	InstallPlan *v1alpha1.InstallPlan
	// Namespace contains the namespace of the plan, if it exists. If the list was not read, Reconcile assumes that the
	// namespace is not being deleted.
	Namespace olmcore.Observed[*corev1.Namespace]
	// Subscriptions contains the Subscriptions of the namespace. It is always correct to pass all of them. Gather may omit
	// Subscriptions that are not related to the plan. Required.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	// OperatorGroups contains all OperatorGroups of the namespace of the plan.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// ClusterServiceVersions contains ClusterServiceVersions of the namespace of the plan, including copies. The list must
	// contain:
	//   - those that the steps describe, belong to or name as owners
	//   - those that the CustomResourceDefinitions of the plan record
	//   - all of the namespace if the plan failed
	//   - all of the namespace if a CustomResourceDefinition of the plan has a conversion webhook
	//   - all of the namespace if a step describes a ClusterServiceVersion that is not in spec.clusterServiceVersionNames
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// CustomResourceDefinitions contains the definitions that the steps describe, and the definitions of the kinds of the
	// other steps.
	CustomResourceDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// APIServices contains all APIServices except those that the API server creates for CustomResourceDefinitions. Gather
	// reads them only if a step may add a version to an API group: if a step describes a definition that does not exist,
	// or if the plan runs as a ServiceAccount and has an open step for a definition. If the APIServices were not read,
	// such a step waits.
	APIServices olmcore.Observed[*apiregistrationv1.APIService]
	// Alongside contains the ClusterServiceVersions of other namespaces that are recorded in the CustomResourceDefinitions
	// of the plan. OLM records them as installed alongside.
	Alongside olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Announced contains the keys of ClusterServiceVersions of other namespaces that do not exist yet. The
	// CustomResourceDefinitions of the plan record them, and an unfinished InstallPlan will create them.
	Announced []types.NamespacedName
	// Objects contains the existing objects that the steps describe, except those in the other lists.
	Objects olmcore.Observed[olmcore.Object]
	// ConfigMaps contains the unpacked bundles that the steps reference, also for a plan that is being deleted.
	ConfigMaps olmcore.Observed[*corev1.ConfigMap]
	// PullSecrets contains the Secrets of Config.OLMNamespace that Secret steps copy.
	PullSecrets olmcore.Observed[*corev1.Secret]
	// CatalogSources contains the CatalogSources of Config.OLMNamespace. Gather reads them only if there are PullSecrets
	// and Config.CopyAnySecret is false. A Secret is then copied only if a CatalogSource lists it.
	CatalogSources olmcore.Observed[*v1alpha1.CatalogSource]
	// ServiceAccount is the ServiceAccount that status.attenuatedServiceAccountRef of the plan names, or nil if it does
	// not exist.
	ServiceAccount *corev1.ServiceAccount
	// RelatedPlans contains the other InstallPlans of the namespace that contain a package of the plan. Plans with a
	// common package run one after the other. Gather reads RelatedPlans only for a plan that has steps and may still run.
	RelatedPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// OtherPlans contains the other InstallPlans, of all namespaces, that need one of the bundles in ConfigMaps. Gather
	// reads OtherPlans only for a plan that is being deleted and has ConfigMaps. If OtherPlans were not read, the plan
	// leaves its bundles to package sweep.
	OtherPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// CustomResources contains the results of validating custom resources against new schemas. The caller computes them
	// from Outcome.SchemaChanges. If the list is incomplete, no step is refused because of custom resources.
	CustomResources olmcore.Observed[ResourceVerdict]
	// LastRun contains the results of the last actions. Optional.
	LastRun olmcore.LastResults
	// RBACChanged is true if a Role, RoleBinding or ServiceAccount of the namespace changed since the plan failed.
	// Optional.
	RBACChanged bool
	// Config is the configuration. The zero value selects the defaults of OLM.
	Config Config
	// Unpacked is Outcome.Unpacked of an earlier call for this plan. nil is always correct, but slower.
	Unpacked *Memory
	// Checkpoint is Outcome.Checkpoint of an earlier call for this plan. nil is always correct, but slower.
	Checkpoint *olmcore.Checkpoint
}

// Memory contains the decoded bundles that a plan references, so that the next call need not decode them again. A
// Memory is opaque and limited in size. The caller may discard it.
type Memory = step.Memory

// ResourceVerdict is the result of validating one custom resource of a Version. Old contains the validation errors
// under the schema before the change, and New contains those under the schema after the change. A custom resource
// without errors may be omitted. If ReadError is set, the custom resources of Version could not be read, and the change
// is refused. If Unread is positive, that many custom resources were not validated.
type ResourceVerdict struct {
	CustomResourceDefinition, Version string
	Namespace, Name                   string
	Old, New                          []string
	ReadError                         string
	Unread                            int
}

// SchemaChange requests the validation of custom resources, because a step changes the schemas of a
// CustomResourceDefinition.
type SchemaChange struct {
	// Before is the existing definition, and After is the definition of the step.
	Before, After *apiextensionsv1.CustomResourceDefinition
	// Versions contains the sorted versions whose custom resources must be validated. They are served before and after the
	// change, and their schemas differ.
	Versions []string
}

// lists names the lists that every plan needs.
func (in *Input) lists(v *inputs.ListVisit) {
	namespace := in.InstallPlan.Namespace
	inputs.VisitList(v, "Namespace", &in.Namespace, inputs.Optional, named(namespace))
	inputs.VisitList(v, "Subscriptions", &in.Subscriptions, inputs.Required, inputs.InNamespace(namespace))
}

// stepLists names the lists without which steps cannot be evaluated. They need not be read for other plans.
func (in *Input) stepLists(v *inputs.ListVisit) {
	here := inputs.InNamespace(in.InstallPlan.Namespace)
	inputs.VisitList(v, "RelatedPlans", &in.RelatedPlans, inputs.Optional, here)
	inputs.VisitList(v, "OperatorGroups", &in.OperatorGroups, inputs.Optional, here)
	inputs.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, inputs.Optional, here)
	inputs.VisitList(v, "CustomResourceDefinitions", &in.CustomResourceDefinitions, inputs.Optional)
	inputs.VisitObjects(v, "Objects", &in.Objects, inputs.Optional)
	inputs.VisitList(v, "ConfigMaps", &in.ConfigMaps, inputs.Optional)
	inputs.VisitList(v, "PullSecrets", &in.PullSecrets, inputs.Optional)
}

// otherLists names the lists that only some plans need.
func (in *Input) otherLists(v *inputs.ListVisit) {
	inputs.VisitList(v, "APIServices", &in.APIServices, inputs.Optional)
	inputs.VisitList(v, "Alongside", &in.Alongside, inputs.Optional)
	inputs.VisitList(v, "CatalogSources", &in.CatalogSources, inputs.Optional)
	inputs.VisitList(v, "OtherPlans", &in.OtherPlans, inputs.Optional)
}

// named returns the Check that a Namespace is the one of the plan.
func named(namespace string) inputs.Check {
	return func(o olmcore.Object) (field, problem string) {
		if o.GetName() == namespace {
			return "", ""
		}
		return ".metadata.name", fmt.Sprintf("is %q, but the plan's namespace is %q", o.GetName(), namespace)
	}
}

// cover adds to a Coverage everything on which the decision depends. The decision about a plan that is Complete depends
// on the plan, its namespace and its Subscriptions only.
func (in *Input) cover(c checkpoint.Coverage) checkpoint.Coverage {
	checkpoint.CoverObject(&c, in.InstallPlan)
	checkpoint.CoverFunc(&c, in.Config, Config.Equal)
	if in.InstallPlan == nil {
		return c
	}
	v := inputs.CoverLists(c)
	in.lists(&v)
	if in.isComplete() {
		return v.Coverage()
	}
	in.stepLists(&v)
	in.otherLists(&v)
	c = v.Coverage()
	checkpoint.CoverValues(&c, in.Announced)
	checkpoint.CoverObject(&c, in.ServiceAccount)
	checkpoint.CoverFunc(&c, in.CustomResources, sameVerdicts)
	checkpoint.CoverMap(&c, in.LastRun)
	checkpoint.CoverValue(&c, in.RBACChanged)
	return c
}

func sameVerdicts(a, b olmcore.Observed[ResourceVerdict]) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}

// isComplete reports whether the plan is Complete and stays so. Then the decision depends only on its relations.
func (in *Input) isComplete() bool {
	plan := in.InstallPlan
	return plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete && plan.DeletionTimestamp == nil && !inputs.Terminating(in.Namespace)
}

// validate returns an *olmcore.InputError if the Input breaks its contract.
func (in *Input) validate() error {
	if err := in.validatePlan(); err != nil {
		return err
	}
	v := inputs.ValidateLists()
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
	v := inputs.UnreadLists()
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
