// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// claiming returns version cool.v2, whose APIService does not exist yet, and its predecessor cool.v1.
func claiming(changes ...func(*internalserving.Clients)) internalserving.Clients {
	s := changed(absent)
	s.Relatives = sets.New(s.Neighbours...)
	for _, change := range changes {
		change(&s)
	}
	return s
}

// defined adds a CustomResourceDefinition of the group that was installed with some ClusterServiceVersions.
func defined(plural string, alongside ...string) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: named("", plural+".ice.example.com", nil)}
		crd.Spec.Group, crd.Annotations = "ice.example.com", map[string]string{}
		for i, version := range alongside {
			crd.Annotations[fmt.Sprintf("operatorframework.io/installed-alongside-%d", i)] = version
		}
		s.Definitions = append(s.Definitions, crd)
	}
}

// lists makes versions list a CustomResourceDefinition as owned.
func lists(plural string, by ...func(*internalserving.Clients) *v1alpha1.ClusterServiceVersion) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) {
		for _, version := range by {
			d := &version(s).Spec.CustomResourceDefinitions
			d.Owned = append(d.Owned, v1alpha1.CRDDescription{Name: plural + ".ice.example.com", Version: "v1", Kind: "Cube"})
		}
	}
}

func itself(s *internalserving.Clients) *v1alpha1.ClusterServiceVersion { return s.CSV }

func predecessor(s *internalserving.Clients) *v1alpha1.ClusterServiceVersion {
	return s.Neighbours[0]
}

// sibling adds an APIService of the group with some labels.
func sibling(version string, labels map[string]string) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) {
		a := &apiregistrationv1.APIService{ObjectMeta: named("", version+".ice.example.com", labels)}
		a.Spec.Group, a.Spec.Version = "ice.example.com", version
		s.APIServices = append(s.APIServices, a)
	}
}

// firstInstalledBy makes every CustomResourceDefinition belong to a namespace.
func definitionsFirstInstalledBy(namespace string) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) {
		for _, crd := range s.Definitions {
			crd.Annotations["olmcore/first-installed-by"] = namespace
		}
	}
}

func shared(with string) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) {
		for _, crd := range s.Definitions {
			crd.Annotations["olmcore/api-group-shared-with"] = with
		}
		for _, a := range s.APIServices {
			a.Annotations = map[string]string{"olmcore/api-group-shared-with": with}
		}
	}
}

func automanaged(value string) map[string]string {
	return map[string]string{"kube-aggregator.kubernetes.io/automanaged": value}
}

func TestCSVsThatMayServeAnAPIGroup(t *testing.T) {
	const (
		created = "APIService v1.ice.example.com is not created: "
		run     = " To allow it, a cluster administrator can run: kubectl annotate --overwrite "
		key     = " olmcore/api-group-shared-with="
		notOurs = "CustomResourceDefinition cubes.ice.example.com of the same group was not installed with this operator."
		cubes   = "customresourcedefinition/cubes.ice.example.com"
		another = "APIService v3.ice.example.com of the same group does not belong to this operator."
	)
	refuseCubes := created + notOurs + run + cubes + key + "ns"
	refuseAPI := created + another + run + "apiservice/v3.ice.example.com" + key + "ns"
	live := func(s *internalserving.Clients) {
		csvtest.Hold(s.Neighbours[0], csvtest.Succeeded, "InstallSucceeded", "", time.Minute)
	}
	for name, c := range map[string]struct {
		change func(*internalserving.Clients)
		want   string
	}{
		"nothing of the group exists":                 {changes(), ""},
		"a definition of the replaced version":        {changes(defined("cubes", "ns/cool.v1"), lists("cubes", predecessor)), ""},
		"one that the replaced version does not list": {changes(defined("cubes", "ns/cool.v1"), lists("cubes", itself)), refuseCubes},
		"a definition with only the owner labels of the CSV": {
			changes(
				defined("cubes"), lists("cubes", itself), func(s *internalserving.Clients) { s.Definitions[0].Labels = ownerLabels("ns", "cool.v2") },
			),
			"",
		},
		"one of a version of another namespace": {
			changes(defined("cubes", "other/cool.v2"), lists("cubes", itself, predecessor)),
			refuseCubes,
		},
		"the replaced version does not exist": {
			changes(defined("cubes", "ns/cool.v1"), lists("cubes", predecessor), func(s *internalserving.Clients) { s.Neighbours = nil }),
			refuseCubes,
		},
		"it is a version of the CSV's own name": {
			changes(replaces("cool.v2"), defined("cubes", "other/x"), lists("cubes", itself)),
			refuseCubes,
		},
		"another operator was installed with it too": {changes(defined("cubes", "ns/cool.v2", "other/x"), lists("cubes", itself)),
			created + "CustomResourceDefinition cubes.ice.example.com of the same group was also installed with ClusterServiceVersion other/x." +
				run + cubes + key + "ns"},
		"another operator was installed with it later": {
			changes(defined("cubes", "ns/cool.v2", "other/x"), lists("cubes", itself), definitionsFirstInstalledBy("ns")), "",
		},
		"another operator was installed with it later, and an account installs this one": {
			changes(defined("cubes", "ns/cool.v2", "other/x"), lists("cubes", itself), definitionsFirstInstalledBy("ns"), func(
				s *internalserving.Clients,
			) {
				s.IsConfined = true
			}),
			created + "CustomResourceDefinition cubes.ice.example.com of the same group was also installed with ClusterServiceVersion other/x." +
				run + cubes + key + "ns",
		},
		"another operator was installed with it earlier": {
			changes(defined("cubes", "ns/cool.v2", "other/x"), lists("cubes", itself), definitionsFirstInstalledBy("other")),
			created + "CustomResourceDefinition cubes.ice.example.com of the same group was also installed with ClusterServiceVersion other/x." +
				run + cubes + key + "ns",
		},
		"another operator was installed with it, and the annotation names this namespace": {
			changes(defined("cubes", "other/x"), lists("cubes", itself), definitionsFirstInstalledBy("ns")), refuseCubes,
		},
		"and the group is served already": {
			changes(defined("cubes", "ns/cool.v2", "other/x"), lists("cubes", itself), sibling("v3", ownerLabels("ns", "cool.v2"))),
			"",
		},
		"the claim of others, and the group is served": {
			changes(defined("cubes", "other/x"), sibling("v3", ownerLabels("ns", "cool.v2"))),
			refuseCubes,
		},
		"an APIService of the replaced version":                         {sibling("v3", ownerLabels("ns", "cool.v1")), ""},
		"an APIService of the replaced version, which is not Replacing": {changes(sibling("v3", ownerLabels("ns", "cool.v1")), live), ""},
		"an APIService of an older version": {
			changes(sibling("v3", ownerLabels("ns", "cool.v1")), live, replaces("cool.v1a")), ""},
		"an APIService of another chain": {
			changes(sibling("v3", ownerLabels("ns", "cool.v1")), live, replaces(""), func(s *internalserving.Clients) { s.Relatives = nil }),
			refuseAPI,
		},
		"an APIService of another operator": {sibling("v3", ownerLabels("other", "cool.v2")), refuseAPI},
		"an APIService that is being deleted": {
			changes(sibling("v3", nil), func(s *internalserving.Clients) { s.APIServices[0].DeletionTimestamp = csvtest.Ago(time.Minute) }),
			refuseAPI,
		},
		"an APIService of a definition":          {sibling("v3", automanaged("true")), ""},
		"an APIService of the API server itself": {sibling("v3", automanaged("onstart")), refuseAPI},
		"shared with others": {
			changes(sibling("v3", nil), shared("a, b")),
			created + another + run + "apiservice/v3.ice.example.com" + key + "a, b,ns",
		},
		"shared with the namespace": {changes(sibling("v3", nil), defined("cubes"), shared("a, ns")), ""},
		"shared with a similar namespace": {
			changes(sibling("v3", nil), shared("ns2")),
			created + another + run + "apiservice/v3.ice.example.com" + key + "ns2,ns",
		},
		"definitions come first, by name": {
			changes(sibling("v3", nil), defined("tubes"), defined("cubes")),
			created + notOurs + run + cubes + " customresourcedefinition/tubes.ice.example.com apiservice/v3.ice.example.com" + key + "ns",
		},
		"a Deployment is not described": {changes(defined("cubes"), func(s *internalserving.Clients) {
			s.CSV.Spec.APIServiceDefinitions.Owned = s.CSV.Spec.APIServiceDefinitions.Owned[:1]
			s.CSV.Spec.APIServiceDefinitions.Owned[0].DeploymentName = ""
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := claiming(c.change)
			require.Equal(t, c.want, internalserving.Refusal(s))
			require.Equal(t, c.want == "", slices.ContainsFunc(apiWrites(s), func(a olmcore.Action) bool {
				verb, target, _ := a.Describe()
				return verb == olmcore.VerbCreate && target.Name == apiName
			}) || len(s.CSV.Spec.APIServiceDefinitions.Owned) == 1)
		})
	}
}

// TestExistingAPIServiceIsNeverRefused checks that an existing APIService of the CSV is kept, even in a reserved group.
func TestExistingAPIServiceIsNeverRefused(t *testing.T) {
	s := changed(defined("cubes"), sibling("v3", nil))
	require.Empty(t, internalserving.Refusal(s))
	require.False(t, internalserving.NeedsClaims(s))
	require.Equal(t, []string{"APIService v1.ice.example.com exists and stays, but it would not be created today: " +
		"CustomResourceDefinition cubes.ice.example.com of the same group was not installed with this operator"}, internalserving.Shared(s))
	for i := range s.CSV.Spec.APIServiceDefinitions.Owned {
		s.CSV.Spec.APIServiceDefinitions.Owned[i].Group = internalserving.PackageGroup
	}
	s.APIServices[0].Name, s.APIServices[0].Spec.Group = "v1."+internalserving.PackageGroup, internalserving.PackageGroup
	require.Empty(t, internalserving.Refusal(s))
	require.Equal(t, []string{"APIService v1.packages.operators.coreos.com exists and stays, but it would not be created today: " +
		"API group packages.operators.coreos.com is reserved for the package server of OLM"}, internalserving.Shared(s))
	s.PackageServerNamespaces = []string{"ns"}
	require.Empty(t, internalserving.Shared(s))
}

// TestSpellingOfGroupDoesNotHideItsOwner checks other spellings of a group. The API server treats them as other names,
// or rejects them.
func TestSpellingOfGroupDoesNotHideItsOwner(t *testing.T) {
	for _, group := range []string{
		"ICE.example.com", "ice.example.com.", ".ice.example.com", "ice..example.com", " ice.example.com", "ice.example.com/v1",
		"", "Apps", "operators.coreos.com.", "\u0456ce.example.com",
	} {
		v := csvtest.Operator("cool.v2", 2)
		d := v1alpha1.APIServiceDescription{Name: "ices", Group: group, Version: "v1", Kind: "Ice", DeploymentName: "cool"}
		v.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{d}
		require.NotEmpty(t, internalserving.ProblemOfAPIServices(v), group)
	}
}

// runCommand runs the command in a message.
func runCommand(t require.TestingT, s *internalserving.Clients, refusal string) {
	_, command, found := strings.Cut(refusal, "--overwrite ")
	require.True(t, found, refusal)
	targets, setting, _ := strings.Cut(command, " olmcore/api-group-shared-with=")
	for _, target := range strings.Fields(targets) {
		_, name, _ := strings.Cut(target, "/")
		for _, crd := range s.Definitions {
			if crd.Name == name {
				crd.Annotations["olmcore/api-group-shared-with"] = setting
			}
		}
		for _, a := range s.APIServices {
			if a.Name == name {
				a.Annotations = map[string]string{"olmcore/api-group-shared-with": setting}
			}
		}
	}
}

// TestCommandInMessageAllowsAPIService checks this for any objects of the group in any order. Namespaces that were
// allowed before stay allowed.
func TestCommandInMessageAllowsAPIService(t *testing.T) {
	versions := []string{"ns/cool.v1", "ns/cool.v2", "ns/x", "other/cool.v2"}
	plurals := []string{"cubes", "tubes", "ices"}
	rapid.Check(t, func(t *rapid.T) {
		s := claiming()
		s.Relatives = sets.New(s.Neighbours...)
		for i := range rapid.IntRange(0, 30).Draw(t, "definitions") {
			plural := fmt.Sprintf("%s%d", rapid.SampledFrom(plurals).Draw(t, "plural"), i)
			defined(plural, rapid.SliceOfN(rapid.SampledFrom(versions), 0, 2).Draw(t, "alongside")...)(&s)
			if rapid.Bool().Draw(t, "listed") {
				lists(plural, itself)(&s)
			}
			if with := rapid.SampledFrom([]string{"", "a", "a,b"}).Draw(t, "shared"); with != "" {
				s.Definitions[i].Annotations["olmcore/api-group-shared-with"] = with
			}
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "siblings") {
			labels := rapid.SampledFrom([]map[string]string{
				nil, ownerLabels("other", "x"), ownerLabels("ns", "cool.v1"), automanaged("true"), automanaged("onstart"),
			})
			sibling(fmt.Sprintf("v%d", i+2), labels.Draw(t, "labels"))(&s)
		}
		refusal := internalserving.Refusal(s)
		slices.Reverse(s.Definitions)
		slices.Reverse(s.APIServices)
		require.Equal(t, refusal, internalserving.Refusal(s))
		for range 12 {
			if refusal = internalserving.Refusal(s); refusal == "" {
				break
			}
			runCommand(t, &s, refusal)
		}
		require.Empty(t, refusal)
		for _, crd := range s.Definitions {
			with := crd.Annotations["olmcore/api-group-shared-with"]
			require.Contains(t, []string{"", "a", "a,b", "ns", "a,ns", "a,b,ns"}, with)
		}
	})
}
