// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// cubes returns a CustomResourceDefinition of the group ice.example.com that was installed with some
// ClusterServiceVersions.
func cubes(alongside ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := definition("ice.example.com", "Cube", "cubes", "v1beta1")
	crd.Annotations = map[string]string{}
	for i, version := range alongside {
		crd.Annotations[fmt.Sprintf("operatorframework.io/installed-alongside-%d", i)] = version
	}
	return crd
}

// iceService is an APIService of the group ice.example.com.
func iceService(version string, labels map[string]string) *apiregistrationv1.APIService {
	a := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: version + ".ice.example.com", Labels: labels}}
	a.Spec = apiregistrationv1.APIServiceSpec{
		Group: "ice.example.com", Version: version, GroupPriorityMinimum: 1000, VersionPriority: 100, InsecureSkipTLSVerify: true,
		Service: &apiregistrationv1.ServiceReference{Namespace: "other", Name: "ice"},
	}
	if labels["kube-aggregator.kubernetes.io/automanaged"] != "" {
		a.Spec.Service, a.Spec.InsecureSkipTLSVerify = nil, false
	}
	return a
}

func ownedBy(namespace, name string) map[string]string {
	return olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: namespace, Name: name}.Labels()
}

// ice returns version ice.v1 of testdata, which owns v1.ice.example.com, after some changes.
func ice(changes ...func(c *v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
	c := fromFiles("api-v1.yaml")[0].(*v1alpha1.ClusterServiceVersion)
	for _, change := range changes {
		change(c)
	}
	return c
}

func listsCubes(c *v1alpha1.ClusterServiceVersion) {
	c.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "cubes.ice.example.com", Version: "v1beta1", Kind: "Cube"}}
}

// stateOf returns phase, reason and message of a version of namespace ns.
func stateOf(c *fake.Cluster, name string) (phaseName, string, string) {
	s := fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", name).Status
	return s.Phase, string(s.Reason), s.Message
}

// runCommand runs the kubectl annotate command of a message.
func runCommand(t *testing.T, c *fake.Cluster, message string) {
	t.Helper()
	_, command, found := strings.Cut(message, "kubectl annotate --overwrite ")
	require.True(t, found, message)
	words := strings.Fields(command)
	key, value, found := strings.Cut(words[len(words)-1], "=")
	require.True(t, found, command)
	annotate := func(o olmcore.Object) {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		o.SetAnnotations(annotations)
	}
	for _, target := range words[:len(words)-1] {
		switch resource, name, _ := strings.Cut(target, "/"); resource {
		case "customresourcedefinition":
			require.NoError(t, fake.Edit(c, "", name, func(o *apiextensionsv1.CustomResourceDefinition) { annotate(o) }))
		case "apiservice":
			require.NoError(t, fake.Edit(c, "", name, func(o *apiregistrationv1.APIService) { annotate(o) }))
		default:
			t.Fatalf("unknown resource %s", resource)
		}
	}
}

// TestAPIServiceInGroupOfAnotherOperatorIsRefused simulates an attack. The author of a ClusterServiceVersion tries to
// serve another version of an API group that belongs to another operator. The command in the message allows it.
func TestAPIServiceInGroupOfAnotherOperatorIsRefused(t *testing.T) {
	const victims = "CustomResourceDefinition cubes.ice.example.com of the same group"
	for name, c := range map[string]struct {
		csv    *v1alpha1.ClusterServiceVersion
		exists []olmcore.Object
		why    string
	}{
		"a definition of another operator": {
			ice(),
			[]olmcore.Object{cubes("other/ice.v1")},
			victims + " was not installed with this operator",
		},
		"a definition that no InstallPlan installed": {
			ice(listsCubes), []olmcore.Object{cubes()}, victims + " was not installed with this operator"},
		"a definition of another that the CSV claims": {
			ice(listsCubes),
			[]olmcore.Object{cubes("other/ice.v1")},
			victims + " was not installed with this operator",
		},
		"a definition that the CSV does not list": {
			ice(),
			[]olmcore.Object{cubes("ns/ice.v1")},
			victims + " was not installed with this operator",
		},
		"the same definition, installed again": {
			ice(listsCubes),
			[]olmcore.Object{cubes("ns/ice.v1", "other/ice.v1")},
			victims + " was also installed with ClusterServiceVersion other/ice.v1",
		},
		"a definition of a version that does not exist": {ice(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "ice.v0" }, listsCubes),
			[]olmcore.Object{cubes("ns/ice.v0")}, victims + " was not installed with this operator"},
		"an APIService of another operator": {
			ice(),
			[]olmcore.Object{iceService("v2", ownedBy("other", "ice.v1"))},
			"APIService v2.ice.example.com of the same group does not belong to this operator",
		},
		"an APIService made by hand": {
			ice(),
			[]olmcore.Object{iceService("v2", nil)},
			"APIService v2.ice.example.com of the same group does not belong to this operator",
		},
		"a group that is built into the API server": {
			ice(),
			[]olmcore.Object{iceService("v2", map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"})},
			"APIService v2.ice.example.com of the same group does not belong to this operator"},
		"several objects": {
			ice(),
			[]olmcore.Object{iceService("v3", nil), iceService("v2", nil), cubes("other/ice.v1")},
			victims + " was not installed with this operator",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, driver := newWorld(csv.Config{})
			require.NoError(t, cluster.Create(c.exists...))
			require.NoError(t, cluster.Create(append(fromFiles("base.yaml"), c.csv)...))
			require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
			phase, reason, message := stateOf(cluster, "ice.v1")
			require.Equal(t, failed, phase)
			require.Equal(t, "OwnerConflict", reason)
			require.Contains(t, message, "APIService v1.ice.example.com is not created: "+c.why+". ")
			require.Nil(t, fake.Find[*apiregistrationv1.APIService](cluster, "", "v1.ice.example.com"))

			runCommand(t, cluster, message)
			require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
			phase, _, message = stateOf(cluster, "ice.v1")
			require.Equal(t, succeeded, phase, message)
			require.NotNil(t, fake.Find[*apiregistrationv1.APIService](cluster, "", "v1.ice.example.com"))
		})
	}
}

// TestAPIServiceInOwnGroupIsCreated covers operators that may serve their API group without permission of an
// administrator.
func TestAPIServiceInOwnGroupIsCreated(t *testing.T) {
	elsewhere := definition("other.example.com", "Cube", "cubes", "v1")
	for name, c := range map[string]struct {
		csv    *v1alpha1.ClusterServiceVersion
		exists []olmcore.Object
	}{
		"nothing else exists":                        {ice(), nil},
		"its own definition":                         {ice(listsCubes), []olmcore.Object{cubes("ns/ice.v1")}},
		"its own definition, and an older version's": {ice(listsCubes), []olmcore.Object{cubes("ns/ice.v1", "ns/ice.v0")}},
		"a definition of another group":              {ice(), []olmcore.Object{elsewhere}},
		"an APIService that follows its own definition": {
			ice(listsCubes),
			[]olmcore.Object{cubes("ns/ice.v1"), iceService("v1beta1", map[string]string{"kube-aggregator.kubernetes.io/automanaged": "true"})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, driver := newWorld(csv.Config{})
			require.NoError(t, cluster.Create(c.exists...))
			require.NoError(t, cluster.Create(append(fromFiles("base.yaml"), c.csv)...))
			require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
			phase, _, message := stateOf(cluster, "ice.v1")
			require.Equal(t, succeeded, phase, message)
		})
	}
}

// TestFirstOperatorKeepsItsAPIGroup checks that a second operator, in another namespace and with another version of the
// API group, is refused. It is installed after the first one is deleted.
func TestFirstOperatorKeepsItsAPIGroup(t *testing.T) {
	cluster, driver := newWorld(csv.Config{})
	require.NoError(t, cluster.Create(fromFiles("base.yaml", "api-v1.yaml")...))
	require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
	second := ice(func(c *v1alpha1.ClusterServiceVersion) {
		c.Namespace, c.Spec.APIServiceDefinitions.Owned[0].Version = "second", "v9"
	})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "second", Name: "cool"}}
	require.NoError(t, cluster.Create(account, groupFor(second), second))
	require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
	phase, _, message := stateOf(cluster, "ice.v1")
	require.Equal(t, succeeded, phase, message)
	status := func() v1alpha1.ClusterServiceVersionStatus {
		return fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "second", "ice.v1").Status
	}
	require.Equal(t, failed, status().Phase)
	require.Contains(t, status().Message, "APIService v1.ice.example.com of the same group does not belong to this operator")

	require.NoError(t, cluster.Delete(olmcore.RefOf(fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "ice.v1"))))
	require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
	require.Equal(t, succeeded, status().Phase, status().Message)
}

// TestExistingAPIServiceIsKept checks that an existing APIService is not written, whatever else its group contains.
// This also holds after a manager replaced OLM. Assess reports what would be refused today.
func TestExistingAPIServiceIsKept(t *testing.T) {
	for name, late := range map[string]olmcore.Object{
		"a definition of another":  cubes("other/ice.v1"),
		"an APIService of another": iceService("v9", ownedBy("other", "ice.v1")),
	} {
		t.Run(name, func(t *testing.T) {
			cluster, driver := newWorld(csv.Config{})
			require.NoError(t, cluster.Create(fromFiles("base.yaml", "api-v1.yaml")...))
			require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
			before := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "ice.v1")
			require.NoError(t, cluster.Create(late))
			require.NoError(t, driver.RunFor(t.Context(), time.Hour))
			after := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "ice.v1")
			require.Equal(t, before.ResourceVersion, after.ResourceVersion)
			in, err := csv.Gather(t.Context(), cluster, types.NamespacedName{Namespace: "ns", Name: "ice.v1"}, csv.Config{})
			require.NoError(t, err)
			in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
			said := assess(t, in).Diagnostics
			require.Len(t, said, 1)
			require.Equal(t, csv.ReasonAPIGroupShared, said[0].Reason)
			require.Contains(t, said[0].Message, "APIService v1.ice.example.com exists and stays, but it would not be created today: ")
			require.Contains(t, said[0].Message, late.GetName())

			// The next version takes the APIService over.
			require.NoError(t, cluster.Create(fromFiles("api-v2.yaml")...))
			require.NoError(t, driver.RunFor(t.Context(), time.Hour))
			phase, _, message := stateOf(cluster, "ice.v2")
			require.Equal(t, succeeded, phase, message)
			require.Equal(t, "ice.v2", fake.Find[*apiregistrationv1.APIService](cluster, "", "v1.ice.example.com").Labels["olm.owner"])
		})
	}
}

// TestAPIVersionAddedToSpecIsRefused checks that a Succeeded ClusterServiceVersion gets no further version of the API
// group of another operator. Its existing APIService is kept.
func TestAPIVersionAddedToSpecIsRefused(t *testing.T) {
	cluster, driver := newWorld(csv.Config{})
	victims := definition("victim.example.com", "Cube", "cubes", "v1")
	require.NoError(t, cluster.Create(append(fromFiles("base.yaml", "api-v1.yaml"), victims)...))
	require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
	require.NoError(t, fake.Edit(cluster, "ns", "ice.v1", func(c *v1alpha1.ClusterServiceVersion) {
		d := c.Spec.APIServiceDefinitions.Owned[0]
		d.Group, d.Version = "victim.example.com", "v2"
		c.Spec.APIServiceDefinitions.Owned = append(c.Spec.APIServiceDefinitions.Owned, d)
	}))
	require.NoError(t, driver.RunFor(t.Context(), time.Hour))
	require.Nil(t, fake.Find[*apiregistrationv1.APIService](cluster, "", "v2.victim.example.com"))
	require.NotNil(t, fake.Find[*apiregistrationv1.APIService](cluster, "", "v1.ice.example.com"))
	phase, reason, message := stateOf(cluster, "ice.v1")
	require.Equal(t, []string{string(failed), "OwnerConflict"}, []string{string(phase), reason}, message)
	require.Contains(t, message, "cubes.victim.example.com")

	victims = fake.Find[*apiextensionsv1.CustomResourceDefinition](cluster, "", "cubes.victim.example.com")
	require.NoError(t, cluster.Delete(olmcore.RefOf(victims)))
	require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
	phase, _, message = stateOf(cluster, "ice.v1")
	require.Equal(t, succeeded, phase, message)
}

// TestUpgradeAddsVersionToOwnAPIGroup checks that an upgrade may add a version although the definition is recorded only
// for the replaced version, and another operator was installed with the same definition in the meantime.
func TestUpgradeAddsVersionToOwnAPIGroup(t *testing.T) {
	cluster, driver := newWorld(csv.Config{})
	require.NoError(t, cluster.Create(append(fromFiles("base.yaml"), ice(listsCubes), cubes("ns/ice.v1"))...))
	require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
	require.NoError(t, fake.Edit(cluster, "", "cubes.ice.example.com", func(o *apiextensionsv1.CustomResourceDefinition) {
		o.Annotations["operatorframework.io/installed-alongside-9"] = "other/ice.v1"
	}))
	next := fromFiles("api-v2.yaml")[0].(*v1alpha1.ClusterServiceVersion)
	d := next.Spec.APIServiceDefinitions.Owned[0]
	d.Version = "v2"
	next.Spec.APIServiceDefinitions.Owned = append(next.Spec.APIServiceDefinitions.Owned, d)
	require.NoError(t, cluster.Create(next))
	require.NoError(t, driver.RunFor(t.Context(), time.Hour))
	phase, _, message := stateOf(cluster, "ice.v2")
	require.Equal(t, succeeded, phase, message)
	require.NotNil(t, fake.Find[*apiregistrationv1.APIService](cluster, "", "v2.ice.example.com"))
}

// TestAPIGroupsOfOLMAreReserved checks that only the namespaces in Config may serve the API of the package server.
// Existing APIServices are kept.
func TestAPIGroupsOfOLMAreReserved(t *testing.T) {
	serving := func(group string) *v1alpha1.ClusterServiceVersion {
		return ice(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.APIServiceDefinitions.Owned[0].Group = group })
	}
	const packages = "packages.operators.coreos.com"
	for name, c := range map[string]struct {
		group  string
		config csv.Config
		why    string
	}{
		"packages, from any namespace": {packages, csv.Config{}, "API group " + packages + " is reserved for the package server of OLM. " +
			"To allow it, add namespace ns to csv.packageServerNamespaces in the configuration."},
		"packages, from a namespace of Config": {packages, csv.Config{PackageServerNamespaces: []string{"olm", "ns"}}, ""},
		"packages, from none": {
			packages,
			csv.Config{PackageServerNamespaces: []string{}},
			"API group packages.operators.coreos.com is reserved",
		},
		"another group below the group of OLM": {
			"x.operators.coreos.com",
			csv.Config{PackageServerNamespaces: []string{"ns"}},
			"API group x.operators.coreos.com is reserved for OLM. Use another group.",
		},
		"a group with a similar name": {"xoperators.coreos.com", csv.Config{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, driver := newWorld(c.config)
			require.NoError(t, cluster.Create(append(fromFiles("base.yaml"), serving(c.group))...))
			require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
			phase, _, message := stateOf(cluster, "ice.v1")
			if c.why == "" {
				require.Equal(t, succeeded, phase, message)
				return
			}
			require.Equal(t, failed, phase)
			require.Contains(t, message, c.why)
			require.NoError(t, cluster.Create(&apiregistrationv1.APIService{
				ObjectMeta: metav1.ObjectMeta{Name: "v1." + c.group, Labels: ownedBy("ns", "ice.v1")},
				Spec: apiregistrationv1.APIServiceSpec{
					Group: c.group, Version: "v1", GroupPriorityMinimum: 2000, VersionPriority: 15, InsecureSkipTLSVerify: true,
					Service: &apiregistrationv1.ServiceReference{Namespace: "ns", Name: "ice-service"},
				},
			}))
			require.NoError(t, driver.RunFor(t.Context(), 10*time.Minute))
			phase, _, message = stateOf(cluster, "ice.v1")
			require.Equal(t, succeeded, phase, message)
		})
	}
}

// TestUnreadCRDsDecideNothingAboutAPIServices checks that a new APIService is neither created nor refused if the
// definitions of its group were not read. An existing APIService does not need them.
func TestUnreadCRDsDecideNothingAboutAPIServices(t *testing.T) {
	in := served(t)
	in.GroupDefinitions = olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]{}
	require.Empty(t, assess(t, in).Diagnostics)
	for _, phase := range []phaseName{pending, installReady, installing, succeeded, failed} {
		in := in
		in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
		in.APIServices = olmcore.Found[*apiregistrationv1.APIService]()
		inPhase(&in, phase, "InstallSucceeded")
		out := reconciled(t, in)
		for _, action := range out.Actions {
			_, target, _ := action.Describe()
			require.NotEqual(t, "APIService", target.Kind, phase)
		}
		said := assess(t, in)
		require.Equal(t, "NotObserved", said.Rule, phase)
		require.Equal(t, phase, said.Phase)
	}
}

// TestObjectsOfAPIGroupConcernItsCSVs checks that a ClusterServiceVersion is reconciled after a change of an object
// that allows or refuses its APIService.
func TestObjectsOfAPIGroupConcernItsCSVs(t *testing.T) {
	c, requirer := ice(), ice()
	requirer.Spec.APIServiceDefinitions.Required, requirer.Spec.APIServiceDefinitions.Owned = requirer.Spec.APIServiceDefinitions.Owned, nil
	for _, o := range []olmcore.Object{cubes(), iceService("v9", nil)} {
		require.Contains(t, csv.Affected(o), types.NamespacedName{})
		isConcerned, terms := csv.Concerned(nil, o)
		require.True(t, isConcerned(c))
		require.False(t, isConcerned(requirer))
		shared := false
		csv.Terms(c, func(term olmcore.Term) { shared = shared || slices.Contains(terms, term) })
		require.True(t, shared, "the index finds it")
	}
}
