// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/crds"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

// definitions are OLM's, as the API module has them.
func definitions() []*apiextensionsv1.CustomResourceDefinition {
	return []*apiextensionsv1.CustomResourceDefinition{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
		crds.OperatorCondition(), crds.OperatorGroup(), crds.Operator(), crds.Subscription(),
	}
}

// olmIn is OLM's own installation in a namespace: what its administrator writes, and what a tenant may write.
func olmIn(namespace, role string, bound bool) []olmcore.Object {
	var objects []olmcore.Object
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		d.Spec.Template.Spec.ServiceAccountName = "olm-operator-serviceaccount"
		objects = append(objects, d)
	}
	if bound {
		objects = append(objects, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "olm-operator-binding-" + namespace},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "olm-operator-serviceaccount"}}})
	}
	return objects
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func TestPreflight(t *testing.T) {
	everything := clusterRole("system:controller:operator-lifecycle-manager",
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}})
	change := func(kind string, f func(*apiextensionsv1.CustomResourceDefinition)) func([]olmcore.Object) []olmcore.Object {
		return func(objects []olmcore.Object) []olmcore.Object {
			for _, o := range objects {
				if crd, is := o.(*apiextensionsv1.CustomResourceDefinition); is && crd.Spec.Names.Kind == kind {
					f(crd)
				}
			}
			return objects
		}
	}
	add := func(more ...olmcore.Object) func([]olmcore.Object) []olmcore.Object {
		return func(objects []olmcore.Object) []olmcore.Object { return append(objects, more...) }
	}
	properties := func(crd *apiextensionsv1.CustomResourceDefinition, path string) map[string]apiextensionsv1.JSONSchemaProps {
		s := *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for name := range strings.SplitSeq(path, ".") {
			if s = s.Properties[name]; s.Items != nil {
				s = *s.Items.Schema
			}
		}
		return s.Properties
	}
	const outdated, update = "the CustomResourceDefinitions of OLM are not of the version that is needed: ", ": install those of examples/controllerruntime/config/crds"
	const beside, scale = "an OLM runs in this cluster, and would undo what is written: Deployment ", ": scale it to 0 replicas (and what keeps it from staying so), or run the controllers elsewhere"
	for name, tt := range map[string]struct {
		world   func([]olmcore.Object) []olmcore.Object
		version string
		ignore  []string
		want    []controllers.Refusal
	}{
		"a cluster that is ready": {version: "v1.36.2"},
		"an API server too old": {version: "v1.20.15-gke.100", want: []controllers.Refusal{{Check: "version",
			Problem: "the API server is Kubernetes 1.20.15, and 1.21 is the oldest that serves all kinds that are needed: update the cluster"}}},
		"an API server that is too old, ignored":         {version: "v1.20.15", ignore: []string{"version"}},
		"an API server that was built without a version": {version: "v0.0.0-master+$Format:%H$"},
		"a version that is none": {version: "new", want: []controllers.Refusal{{Check: "version",
			Problem: `the API server's version is "new", which is none: could not parse "new" as version`}}},
		"no definitions": {world: func([]olmcore.Object) []olmcore.Object { return nil }, want: []controllers.Refusal{{Check: "crds", Problem: outdated +
			"catalogsources.operators.coreos.com is missing; clusterserviceversions.operators.coreos.com is missing; installplans.operators.coreos.com is missing; " +
			"olmconfigs.operators.coreos.com is missing; operators.operators.coreos.com is missing; operatorconditions.operators.coreos.com is missing; " +
			"operatorgroups.operators.coreos.com is missing; subscriptions.operators.coreos.com is missing" + update}}},
		"a version that is not served": {
			world: change("OperatorCondition", func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions = crd.Spec.Versions[:1]
			}),
			want: []controllers.Refusal{{Check: "crds", Problem: outdated + "operatorconditions.operators.coreos.com does not serve v2" + update}},
		},
		"no status subresource": {
			world: change("OperatorGroup", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Subresources = nil }),
			want:  []controllers.Refusal{{Check: "crds", Problem: outdated + "operatorgroups.operators.coreos.com has no status subresource in v1" + update}},
		},
		"fields that would be dropped": {
			world: change("InstallPlan", func(crd *apiextensionsv1.CustomResourceDefinition) {
				delete(properties(crd, "status"), "message")
				delete(properties(crd, "status.plan"), "optional")
			}),
			want: []controllers.Refusal{{Check: "crds", Problem: outdated + "installplans.operators.coreos.com does not know status.plan.optional, status.message in v1alpha1" + update}},
		},
		"a field of a version's spec": {
			world: change("ClusterServiceVersion", func(crd *apiextensionsv1.CustomResourceDefinition) { delete(properties(crd, "spec"), "cleanup") }),
			want:  []controllers.Refusal{{Check: "crds", Problem: outdated + "clusterserviceversions.operators.coreos.com does not know spec.cleanup in v1alpha1" + update}},
		},
		"a schema that keeps what it does not know": {
			world: change("InstallPlan", func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
			}),
		},
		"a field that is only read": {
			world: change("CatalogSource", func(crd *apiextensionsv1.CustomResourceDefinition) { delete(properties(crd, "spec"), "grpcPodConfig") }),
		},
		"an OLM beside": {
			world: add(append(olmIn("olm", everything.Name, true), everything)...),
			want:  []controllers.Refusal{{Check: "olm", Problem: beside + "olm/catalog-operator, olm/olm-operator" + scale}},
		},
		"an OLM whose Pods are not ready": {
			world: add(append(olmIn("olm", everything.Name, true), everything)...),
			want:  []controllers.Refusal{{Check: "olm", Problem: beside + "olm/catalog-operator, olm/olm-operator" + scale}},
		},
		"an OLM beside, ignored": {world: add(append(olmIn("olm", everything.Name, true), everything)...), ignore: []string{"olm"}},
		"an OLM of any namespace": {
			world: add(append(olmIn("operators-of-mine", "may-write", true),
				clusterRole("may-write", rbacv1.PolicyRule{APIGroups: []string{"operators.coreos.com"}, Resources: []string{"*"}, Verbs: []string{"*"}}))...),
			want: []controllers.Refusal{{Check: "olm", Problem: beside + "operators-of-mine/catalog-operator, operators-of-mine/olm-operator" + scale}},
		},
		"an OLM that is scaled to nothing": {world: func(objects []olmcore.Object) []olmcore.Object {
			for _, o := range olmIn("olm", everything.Name, true) {
				if d, is := o.(*appsv1.Deployment); is {
					d.Spec.Replicas, d.Status.ReadyReplicas = new(int32(0)), 1 // the last of its Pods is ending
				}
				objects = append(objects, o)
			}
			return append(objects, everything)
		}},
		"a tenant's Deployments of the names":    {world: add(append(olmIn("tenant", "", false), everything)...)},
		"a tenant's account that may write less": {world: add(append(olmIn("tenant", "view", true), everything, clusterRole("view", rbacv1.PolicyRule{APIGroups: []string{"operators.coreos.com"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}))...)},
		"an account of another name in the namespace": {world: func(objects []olmcore.Object) []olmcore.Object {
			installed := olmIn("olm", everything.Name, true)
			installed[2].(*rbacv1.ClusterRoleBinding).Subjects[0].Name = "other"
			return append(append(objects, everything), installed...)
		}},
		"two problems": {version: "v1.20.0", world: func([]olmcore.Object) []olmcore.Object {
			return append(olmIn("olm", everything.Name, true), everything)
		},
			ignore: []string{"crds"}, want: []controllers.Refusal{
				{Check: "version", Problem: "the API server is Kubernetes 1.20.0, and 1.21 is the oldest that serves all kinds that are needed: update the cluster"},
				{Check: "olm", Problem: beside + "olm/catalog-operator, olm/olm-operator" + scale},
			}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []olmcore.Object
			for _, crd := range definitions() {
				objects = append(objects, crd)
			}
			if tt.world != nil {
				objects = tt.world(objects)
			}
			r, err := olmcore.NewSnapshot(objects, olmcore.Everything)
			require.NoError(t, err)
			p := controllers.Preflight{Reader: r, Options: controllers.Options{KubernetesVersion: tt.version}, Ignore: tt.ignore}
			require.Empty(t, cmp.Diff(tt.want, refusals(t, p.Run(t.Context()))))
		})
	}
}

// refusals are what an error of Run joins.
func refusals(t *testing.T, err error) (all []controllers.Refusal) {
	t.Helper()
	if err == nil {
		return nil
	}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var r *controllers.Refusal
		require.ErrorAs(t, e, &r)
		all = append(all, *r)
	}
	return all
}

// unreadable fails each read.
type unreadable struct{ olmcore.Reader }

func (unreadable) Get(context.Context, schema.GroupVersionKind, string, string) (olmcore.Object, error) {
	return nil, errors.New("broken")
}

func (unreadable) List(context.Context, schema.GroupVersionKind, string, labels.Selector) ([]olmcore.Object, error) {
	return nil, errors.New("broken")
}

// refused may not read some kinds.
type refused struct {
	olmcore.Reader
	kinds []string
}

func (r refused) refuse(gvk schema.GroupVersionKind, name string) error {
	if !slices.Contains(r.kinds, gvk.Kind) {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind) + "s"}, name, errors.New("no rule allows it"))
}

func (r refused) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if err := r.refuse(gvk, name); err != nil {
		return nil, err
	}
	return r.Reader.Get(ctx, gvk, namespace, name)
}

func (r refused) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if err := r.refuse(gvk, ""); err != nil {
		return nil, err
	}
	return r.Reader.List(ctx, gvk, namespace, selector)
}

// TestPreflightSaysWhatItMayNotLookAt: an OLM beside that is not found for want of rights is not taken for absent.
func TestPreflightSaysWhatItMayNotLookAt(t *testing.T) {
	everything := clusterRole("all", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	objects := append(olmIn("olm", everything.Name, true), everything)
	for _, crd := range definitions() {
		objects = append(objects, crd)
	}
	all, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	for kind, want := range map[string]string{
		"ClusterRoleBinding":       `olm: list ClusterRoleBinding in "": clusterrolebindings.rbac.authorization.k8s.io is forbidden: no rule allows it`,
		"ClusterRole":              `olm: list ClusterRole in "": clusterroles.rbac.authorization.k8s.io is forbidden: no rule allows it`,
		"Deployment":               `olm: get Deployment olm/olm-operator: deployments.apps "olm-operator" is forbidden: no rule allows it`,
		"CustomResourceDefinition": `crds: get CustomResourceDefinition catalogsources.operators.coreos.com: customresourcedefinitions.apiextensions.k8s.io "catalogsources.operators.coreos.com" is forbidden: no rule allows it`,
	} {
		var told []string
		p := controllers.Preflight{Reader: refused{all, []string{kind}}, Unjudged: func(check string, why error) { told = append(told, check+": "+why.Error()) }}
		found := refusals(t, p.Run(t.Context()))
		require.Equal(t, []string{want}, told)
		require.Equal(t, kind == "CustomResourceDefinition", len(found) == 1, "%v", found) // then the other check finds the OLM
		p.Unjudged = nil
		require.Equal(t, found, refusals(t, p.Run(t.Context())))
	}
}

// TestPreflightJudgesNothingThatItDidNotRead, and says what it could not read for another reason.
func TestPreflightJudgesNothingThatItDidNotRead(t *testing.T) {
	nothing, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	require.NoError(t, controllers.Preflight{Reader: nothing}.Run(t.Context()))
	err = controllers.Preflight{Reader: unreadable{}}.Run(t.Context())
	require.ErrorContains(t, err, "the check crds failed: get CustomResourceDefinition catalogsources.operators.coreos.com: broken")
	require.ErrorContains(t, err, "the check olm failed: list ClusterRoleBinding")
	require.NoError(t, controllers.Preflight{Reader: unreadable{}, Ignore: controllers.Checks()}.Run(t.Context()))
}

func TestPreflightRefusesNamesThatItDoesNotKnow(t *testing.T) {
	for want, p := range map[string]controllers.Preflight{
		`invalid input: ignore "crd" is no check: did you mean "crds"? There are version, crds, rights, olm`: {Ignore: []string{"olm", "crd"}},
		`invalid input: only "operator" is switched off: set Operators`:                                      {Only: []string{"operator"}},
	} {
		err := p.Run(t.Context())
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		require.EqualError(t, err, want)
	}
}

func TestPreflightAsksForTheRightsOfTheControllers(t *testing.T) {
	nothing, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	const bind = ": bind it to the ClusterRole of examples/controllerruntime/config/rbac, or take another account"
	for name, tt := range map[string]struct {
		options controllers.Options
		allowed func(authorizationv1.ResourceAttributes) bool
		want    string
		asked   int // at least
	}{
		"everything":         {allowed: func(authorizationv1.ResourceAttributes) bool { return true }, asked: 1},
		"all but everything": {asked: 2, allowed: func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "*" }},
		"all but a few": {
			asked: 2,
			allowed: func(a authorizationv1.ResourceAttributes) bool {
				return a.Verb != "*" && a.Resource != "pods" && (a.Subresource != "status" || a.Verb != "patch")
			},
			want: "the account of the kubeconfig, or of the Pod, may not get, list, watch, create, patch, delete pods; patch catalogsources/status.operators.coreos.com" + bind,
		},
		"a namespace of a shard": {
			options: controllers.Options{Namespaces: []string{"a", "b"}}, asked: 2,
			allowed: func(a authorizationv1.ResourceAttributes) bool {
				return a.Verb != "*" && (a.Resource != "pods" || a.Namespace != "b")
			},
			want: "the account of the kubeconfig, or of the Pod, may not get, list, watch, create, patch, delete pods in namespace b" + bind,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			p := controllers.Preflight{Reader: nothing, Options: tt.options, Only: []string{controllers.Catalog},
				Allowed: func(_ context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
					asked++
					return tt.allowed(a), nil
				}}
			err := p.Run(t.Context())
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tt.want)
			}
			require.GreaterOrEqual(t, asked, tt.asked)
		})
	}
	broken := controllers.Preflight{Reader: nothing, Allowed: func(context.Context, authorizationv1.ResourceAttributes) (bool, error) {
		return false, errors.New("gone")
	}}
	require.EqualError(t, broken.Run(t.Context()), "the check rights failed: gone")
}
