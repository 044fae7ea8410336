// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// TestObjectsOfOtherOwnersAreKept changes one label, UID or time of an object of each kind. The object then exists
// after the whole cleanup, in every mode. Without the change, it is deleted, unless it is a CRD or the CSV was deleted
// with orphan propagation.
func TestObjectsOfOtherOwnersAreKept(t *testing.T) {
	differences := map[string]func(o olmcore.Object){
		"none":                  func(olmcore.Object) {},
		"another owner":         label("olm.owner", "cool.v2"),
		"another namespace":     label("olm.owner.namespace", "other"),
		"another kind of owner": label("olm.owner.kind", "OperatorGroup"),
		"another incarnation":   label("olm.owner.uid", "before"),
		"no owner":              func(o olmcore.Object) { o.SetLabels(map[string]string{"olm.managed": "true"}) },
		"a label is missing": func(o olmcore.Object) {
			labels := maps.Clone(o.GetLabels())
			delete(labels, "olm.owner.kind")
			o.SetLabels(labels)
		},
		"younger than the deletion": func(o olmcore.Object) { o.SetCreationTimestamp(*ago(9 * time.Second)) },
		"owned by another version":  func(o olmcore.Object) { o.SetOwnerReferences(ownerCSV("other")) },
	}
	for mode, enter := range cleanupModes {
		for name, differ := range differences {
			for i := range belongings() {
				o := belongings()[i]
				key := olmcore.KeyOf(o)
				t.Run(fmt.Sprintf("%s/%s/%s", mode, key.Kind, name), func(t *testing.T) {
					in := leaving()
					enter(&in)
					differ(o)
					in.Deletion.ClusterObjects.Items = []olmcore.Object{o}
					end := finish(t, in)
					deleted := name == "none" && key.Kind != "CustomResourceDefinition" && mode != cleanup.ModeOrphan
					require.Equal(t, !deleted, len(end.Deletion.ClusterObjects.Items) == 1)
				})
			}
		}
	}
}

// TestServingBindingsAreFoundByName checks ClusterRoleBindings, and RoleBindings in kube-system.
func TestServingBindingsAreFoundByName(t *testing.T) {
	labelled := func(key, value string) func(*rbacv1.RoleBinding, *cleanup.Input) {
		return func(o *rbacv1.RoleBinding, _ *cleanup.Input) {
			o.Labels = ours("").Labels
			o.Labels["olm.managed"], o.Labels[key] = "true", value
		}
	}
	for name, c := range map[string]struct {
		change func(o *rbacv1.RoleBinding, in *cleanup.Input)
		ours   bool
	}{
		"ours":                  {func(*rbacv1.RoleBinding, *cleanup.Input) {}, true},
		"with our owner labels": {labelled("olm.owner", "cool.v1"), true},
		"with the owner labels of a CSV that does not exist": {labelled("olm.owner", "cool.v2"), true},
		"with the owner labels of another CSV": {func(o *rbacv1.RoleBinding, in *cleanup.Input) {
			labelled("olm.owner", "other.v1")(o, in)
			other := operator("other.v1", 1)
			other.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil
			in.Neighbours.Items = append(in.Neighbours.Items, other)
		}, false},
		"with the owner labels of another namespace": {labelled("olm.owner.namespace", "other"), false},
		"with the owner labels of an OperatorGroup":  {labelled("olm.owner.kind", "OperatorGroup"), false},
		"with the owner labels of another UID":       {labelled("olm.owner.uid", "before"), false},
		"not managed":                                {func(o *rbacv1.RoleBinding, _ *cleanup.Input) { o.Labels = nil }, false},
		"for another Deployment": {
			func(o *rbacv1.RoleBinding, _ *cleanup.Input) { o.Name = "hot-service-auth-reader" }, false},
		"another account too": {func(o *rbacv1.RoleBinding, _ *cleanup.Input) {
			o.Subjects = append(o.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "other", Name: "x"})
		}, false},
		"a user":           {func(o *rbacv1.RoleBinding, _ *cleanup.Input) { o.Subjects[0].Kind = "User" }, false},
		"without subjects": {func(o *rbacv1.RoleBinding, _ *cleanup.Input) { o.Subjects = nil }, false},
		"younger":          {func(o *rbacv1.RoleBinding, _ *cleanup.Input) { o.CreationTimestamp = *ago(0) }, false},
		"younger, and labelled with the UID of this CSV": {func(o *rbacv1.RoleBinding, in *cleanup.Input) {
			labelled("olm.owner.uid", string(in.ClusterServiceVersion.UID))(o, in)
			o.CreationTimestamp = *ago(0)
		}, true},
		"in another namespace": {func(o *rbacv1.RoleBinding, _ *cleanup.Input) { o.Namespace = "ns" }, false},
		"of a Deployment with a dot": {func(o *rbacv1.RoleBinding, in *cleanup.Input) {
			in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name, o.Name = "cool.x", "cool.x-service-auth-reader"
		}, true},
		"the successor has the Deployment too": {func(_ *rbacv1.RoleBinding, in *cleanup.Input) { successorOf(in, succeeded) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving()
			in.Deployments.Items = nil
			o := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{
					Namespace:         "kube-system",
					Name:              "cool-service-auth-reader",
					UID:               "reader",
					ResourceVersion:   "1",
					CreationTimestamp: *ago(time.Hour),
					Labels:            map[string]string{"olm.managed": "true"},
				},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}},
			}
			c.change(o, &in)
			in.Deletion.WellKnown.Items = []olmcore.Object{o}
			want := release
			if c.ours {
				want = []string{"delete RoleBinding " + o.Name}
			}
			require.Equal(t, want, does(t, in))
		})
	}
}

// TestUpgradeKeepsAPIServiceOfBothVersions checks that the cleanup of an old version keeps an APIService that the new
// version provides too. Without a new version, the APIService is deleted.
func TestUpgradeKeepsAPIServiceOfBothVersions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *cleanup.Input, next *v1alpha1.ClusterServiceVersion)
		stays  bool
	}{
		"the newer version provides it": {func(*cleanup.Input, *v1alpha1.ClusterServiceVersion) {}, true},
		"the newer version provides another": {func(_ *cleanup.Input, next *v1alpha1.ClusterServiceVersion) {
			next.Spec.APIServiceDefinitions.Owned[0].Version = "v2"
		}, false},
		"the newer version is being deleted too": {
			func(_ *cleanup.Input, next *v1alpha1.ClusterServiceVersion) { next.DeletionTimestamp = ago(0) }, false,
		},
		"there is no newer version": {
			func(in *cleanup.Input, _ *v1alpha1.ClusterServiceVersion) { in.Neighbours.Items = nil }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving()
			next := successorOf(&in, pending)
			next.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Version: "v1", Group: "cool.example.com", Kind: "Cool"}}
			service := &apiregistrationv1.APIService{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
				ObjectMeta: ours("v1.cool.example.com"),
			}
			in.Deletion.ClusterObjects.Items = []olmcore.Object{service}
			c.change(&in, next)
			if c.stays {
				require.Equal(t, release, does(t, in))
			} else {
				require.Equal(t, []string{"delete APIService v1.cool.example.com"}, does(t, in))
			}
		})
	}
}

// TestObjectsLeftByPreviousVersionAreDeleted checks that objects of the previous version are deleted with a version
// that was deleted before it took them over: an APIService, and the bindings for its certificates.
func TestObjectsLeftByPreviousVersionAreDeleted(t *testing.T) {
	of := func(o olmcore.Object, namespace, name string) olmcore.Object {
		o.SetLabels(
			map[string]string{"olm.owner": name, "olm.owner.namespace": namespace, "olm.owner.kind": "ClusterServiceVersion", "olm.managed": "true"},
		)
		return o
	}
	service := func(name string) olmcore.Object {
		return &apiregistrationv1.APIService{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "service"},
		}
	}
	goes := []string{"delete APIService v1.cool.example.com"}
	for name, c := range map[string]struct {
		object olmcore.Object
		change func(in *cleanup.Input)
		want   []string
	}{
		"the previous version does not exist": {object: of(service("v1.cool.example.com"), "ns", "cool.v0"), want: goes},
		"the binding of the previous version": {
			object: of(delegator(), "ns", "cool.v0"), want: []string{"delete ClusterRoleBinding cool-service-system:auth-delegator"},
		},
		"it is of another namespace": {object: of(service("v1.cool.example.com"), "other", "cool.v0"), want: release},
		"it belongs to an earlier CSV of that name": {object: func() olmcore.Object {
			o := of(service("v1.cool.example.com"), "ns", "cool.v1")
			o.GetLabels()["olm.owner.uid"] = "x"
			return o
		}(), want: release},
		"a user created it":                 {object: service("v1.cool.example.com"), want: release},
		"this version does not own the API": {object: of(service("v2.cool.example.com"), "ns", "cool.v0"), want: release},
		"it was created after the deletion": {object: func() olmcore.Object {
			o := of(service("v1.cool.example.com"), "ns", "cool.v0")
			o.SetCreationTimestamp(*ago(0))
			return o
		}(), want: release},
		"the previous version exists": {object: of(service("v1.cool.example.com"), "ns", "cool.v0"), want: release, change: func(in *cleanup.Input) {
			in.Neighbours.Items = append(in.Neighbours.Items, operator("cool.v0", 1))
		}},
		"a later version owns the API": {object: of(service("v1.cool.example.com"), "ns", "cool.v0"), want: release, change: func(in *cleanup.Input) {
			successorOf(in, pending).Spec.APIServiceDefinitions = in.ClusterServiceVersion.Spec.APIServiceDefinitions
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving()
			in.Deployments.Items = nil
			in.ClusterServiceVersion.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{
				{Version: "v1", Group: "cool.example.com", Kind: "Cool"},
			}
			in.Deletion.WellKnown.Items = []olmcore.Object{c.object}
			if c.change != nil {
				c.change(&in)
			}
			require.Equal(t, c.want, does(t, in))
		})
	}
}

// TestAPIServicesOfVersionAreDeleted checks APIServices that OLM created, whose labels have no UID, and those that this
// library created. An APIService of the next installation is kept in every mode.
func TestAPIServicesOfVersionAreDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		uid  string
		goes bool
	}{
		"OLM created it":                      {"", true},
		"this library created it":             {"uid-cool.v1", true},
		"it belongs to the next installation": {"later", false},
	} {
		for _, superseded := range []bool{false, true} {
			in := leaving()
			if superseded {
				successorOf(&in, pending)
			}
			service := &apiregistrationv1.APIService{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
				ObjectMeta: ours("v1.cool.example.com"),
			}
			if c.uid != "" {
				service.Labels["olm.owner.uid"] = c.uid
			}
			in.Deletion.ClusterObjects.Items = []olmcore.Object{service}
			want := release
			if c.goes {
				want = []string{"delete APIService v1.cool.example.com"}
			}
			require.Equal(t, want, does(t, in), name)
		}
	}
}

// TestConversionIsRemovedUnlessAnotherVersionNeedsIt checks that the Service of the operator is removed from a CRD in
// every mode except Orphan, unless a live version has a webhook for the CRD.
func TestConversionIsRemovedUnlessAnotherVersionNeedsIt(t *testing.T) {
	reset := []string{"update CustomResourceDefinition cools.example.com"}
	claim := func(v *v1alpha1.ClusterServiceVersion) {
		v.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{
			{Type: v1alpha1.ConversionWebhook, ConversionCRDs: []string{"cools.example.com"}},
		}
	}
	for name, c := range map[string]struct {
		change func(in *cleanup.Input)
		want   []string
	}{
		"uninstalled": {func(*cleanup.Input) {}, reset},
		"replaced, and no other version converts it": {func(in *cleanup.Input) { successorOf(in, succeeded) }, reset},
		"replaced, and the successor converts it":    {func(in *cleanup.Input) { claim(successorOf(in, succeeded)) }, release},
		"replaced by a version that is being deleted": {
			func(in *cleanup.Input) { s := successorOf(in, succeeded); claim(s); s.DeletionTimestamp = ago(0) }, reset,
		},
		"a version of another namespace converts it": {func(in *cleanup.Input) {
			s := successorOf(in, succeeded)
			claim(s)
			s.Namespace, s.Spec.Replaces = "evil", ""
		}, reset},
		"a version of another namespace that it was also installed with": {func(in *cleanup.Input) {
			s := successorOf(in, succeeded)
			claim(s)
			s.Namespace, s.Spec.Replaces = "there", ""
			crd := in.CustomResourceDefinitions.Items[0]
			crd.Annotations, _ = olmcore.MergeMaps(
				crd.Annotations, map[string]string{"operatorframework.io/installed-alongside-there": "there/" + s.Name},
			)
		}, reset},
		"the spec no longer has a webhook": {func(in *cleanup.Input) { in.ClusterServiceVersion.Spec.WebhookDefinitions = nil }, reset},
		"the spec has no webhook, and the next version owns the CRD": {func(in *cleanup.Input) {
			in.ClusterServiceVersion.Spec.WebhookDefinitions = nil
			successorOf(in, succeeded)
		}, release},
		"without group annotations": {func(in *cleanup.Input) { in.ClusterServiceVersion.Annotations = nil }, reset},
		"the CRD is being deleted too": {
			func(in *cleanup.Input) { in.CustomResourceDefinitions.Items[0].DeletionTimestamp = ago(0) }, release},
		"the CSV does not own the CRD": {
			func(in *cleanup.Input) { in.ClusterServiceVersion.Spec.CustomResourceDefinitions.Owned = nil }, release},
		"unrecorded CRD that this version converts":        {func(in *cleanup.Input) { convertedBy(in, "ns/cool.v1") }, reset},
		"unrecorded CRD that another version converts":     {func(in *cleanup.Input) { convertedBy(in, "there/cool.v1") }, release},
		"the previous version left it, and does not exist": {func(in *cleanup.Input) { convertedBy(in, "ns/cool.v0") }, reset},
		"the previous version left it, and is being deleted": {func(in *cleanup.Input) {
			convertedBy(in, "ns/cool.v0")
			before := operator("cool.v0", 1)
			before.DeletionTimestamp = ago(0)
			in.Neighbours.Items = append(in.Neighbours.Items, before)
		}, release},
		"the previous version left it, and the CSVs were not read": {func(in *cleanup.Input) {
			convertedBy(in, "ns/cool.v0")
			in.Neighbours = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
		}, nil},
		"unrecorded CRD": {func(in *cleanup.Input) { convertedBy(in, "") }, release},
		"on another path and port": {func(in *cleanup.Input) {
			service := in.CustomResourceDefinitions.Items[0].Spec.Conversion.Webhook.ClientConfig.Service
			service.Path, service.Port = new("/convert"), new(int32(9443))
		}, reset},
		"it is the Service of another operator": {func(in *cleanup.Input) {
			in.CustomResourceDefinitions.Items[0].Spec.Conversion.Webhook.ClientConfig.Service.Name = "hot-service"
		}, release},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving()
			in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{
				{DeploymentName: "cool", Type: v1alpha1.ConversionWebhook},
			}
			in.CustomResourceDefinitions.Items[0].Spec.Conversion = ourConversion()
			c.change(&in)
			require.Equal(t, c.want, does(t, in))
		})
	}
}

// convertedBy removes the record of an InstallPlan from the CRD, and records the version that set its conversion.
func convertedBy(in *cleanup.Input, version string) {
	in.CustomResourceDefinitions.Items[0].Annotations = map[string]string{"olmcore/converted-by": version}
}

func TestRemovedConversionLosesItsAnnotation(t *testing.T) {
	in := leaving()
	in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{
		{DeploymentName: "cool", Type: v1alpha1.ConversionWebhook},
	}
	in.CustomResourceDefinitions.Items[0].Spec.Conversion = ourConversion()
	convertedBy(&in, "ns/cool.v1")
	actions := reconciled(t, in).Actions
	i := slices.IndexFunc(actions, func(a olmcore.Action) bool { _, ref, _ := a.Describe(); return ref.Kind == "CustomResourceDefinition" })
	require.Empty(t, actions[i].(olmcore.Update).After.GetAnnotations())
}

// TestWebhookConfigurationsAreDeletedWithTheirVersion checks configurations that OLM created, whose labels have no UID.
// Those of the next version, of another installation and of another namespace are kept.
func TestWebhookConfigurationsAreDeletedWithTheirVersion(t *testing.T) {
	for name, c := range map[string]struct {
		key, value string
		goes       bool
	}{
		"OLM created it":                      {"olm.webhook-description-generate-name", "w.example.com", true},
		"this library created it":             {"olm.owner.uid", "uid-cool.v1", true},
		"it belongs to the next installation": {"olm.owner.uid", "later", false},
		"it belongs to the next version":      {"olm.owner", "cool.v2", false},
		"it is of another namespace":          {"olm.owner.namespace", "there", false},
		"it is of an object of other kind":    {"olm.owner.kind", "OperatorGroup", false},
	} {
		for _, superseded := range []bool{false, true} {
			in := leaving()
			if superseded {
				successorOf(&in, succeeded)
			}
			hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: ours("w.example.com-x")}
			hook.Labels[c.key] = c.value
			in.Deletion.ClusterObjects.Items = []olmcore.Object{hook}
			want := release
			if c.goes {
				want = []string{"delete ValidatingWebhookConfiguration w.example.com-x"}
			}
			require.Equal(t, want, does(t, in), name)
		}
	}
}

// TestIncompleteConversionsAreKept checks conversions without each part that an API server can omit.
func TestIncompleteConversionsAreKept(t *testing.T) {
	conversions := map[string]*apiextensionsv1.CustomResourceConversion{
		"no conversion": nil, "no webhook": {Strategy: apiextensionsv1.WebhookConverter},
		"no client": {
			Webhook: &apiextensionsv1.WebhookConversion{},
		}, "no service": {Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{}}},
		"the Service of another operator": {
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig: &apiextensionsv1.WebhookClientConfig{
					Service: &apiextensionsv1.ServiceReference{Namespace: "other", Name: "cool-service"},
				},
			},
		},
	}
	for name, conversion := range conversions {
		in := leaving()
		in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{
			{DeploymentName: "cool", Type: v1alpha1.ConversionWebhook},
		}
		in.CustomResourceDefinitions.Items[0].Spec.Conversion = conversion
		require.Equal(t, release, does(t, in), name)
	}
}
