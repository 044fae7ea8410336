// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/controlplane"
)

// source makes a CatalogSource with a spec.
func (s *story) source(name, spec string) {
	s.given("{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: " + name + "}, spec: " + spec + "}")
}

// served are the Pods of a catalog that are not on their way out.
func (s *story) served(catalog string) (pods []*corev1.Pod) {
	for _, p := range list[*corev1.Pod](s) {
		if p.Labels["olm.catalogSource"] == catalog && p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// reasonIs waits until a CatalogSource has a condition: "STATUS REASON".
func (s *story) reasonIs(catalog, condition, want string) {
	s.Helper()
	eventually(s, catalog+" says "+condition+" "+want, func() string {
		text, _, _ := strings.Cut(conditionOf(get[*v1alpha1.CatalogSource](s, catalog), condition), ":")
		return text
	}, want)
}

const plainImage = "{sourceType: grpc, image: registry.example.com/NS/catalog:v1, grpcPodConfig: {securityContextConfig: restricted}}"

func TestTypesOfCatalogSources(t *testing.T) {
	t.Parallel()
	tell(t, "an image is served by a Pod behind a Service", func(s *story) {
		s.source("community", plainImage)
		s.reasonIs("community", "Available", "True RegistryServing")
		require.Len(s, s.served("community"), 1)
		require.Equal(s, s.image("catalog:v1"), s.served("community")[0].Spec.Containers[0].Image)
		require.Equal(s, int32(50051), get[*corev1.Service](s, "community").Spec.Ports[0].Port)
		status := get[*v1alpha1.CatalogSource](s, "community").Status.RegistryServiceStatus
		require.Equal(s, []string{"community", s.ns, "50051", "grpc"}, []string{status.ServiceName, status.ServiceNamespace, status.Port, status.Protocol})
	})
	tell(t, "a ConfigMap is served by a Pod of OLM's", func(s *story) {
		s.given("{apiVersion: v1, kind: ConfigMap, metadata: {name: content}, data: {packages: '[]', customResourceDefinitions: '[]', clusterServiceVersions: '[]'}}")
		s.source("community", "{sourceType: configmap, configMap: content, grpcPodConfig: {securityContextConfig: restricted}}")
		s.reasonIs("community", "Available", "True RegistryServing")
		require.Equal(s, configMapServerImage, s.served("community")[0].Spec.Containers[0].Image)
		require.Equal(s, "content", get[*v1alpha1.CatalogSource](s, "community").Status.ConfigMapResource.Name)
	})
	tell(t, "an address has no Pod", func(s *story) {
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0"))
		s.reasonIs("community", "Available", "True ConnectionReady")
		require.Empty(s, s.served("community"))
		eventually(s, "the connection is told", func() string {
			if c := get[*v1alpha1.CatalogSource](s, "community").Status.GRPCConnectionState; c != nil {
				return c.Address + " " + c.LastObservedState
			}
			return ""
		}, "community.NS.svc:50051 READY")
	})
}

func TestBadSpecsOfCatalogSources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sentence, spec, message string }{
		{"neither image nor address", "{sourceType: grpc}", "image and address unset: at least one must be set for sourcetype: grpc"},
		{"a type that there is not", "{sourceType: svn, image: x}", "unknown sourcetype: svn"},
		{"no name of a ConfigMap", "{sourceType: configmap}", "configmap name unset: must be set for sourcetype: configmap"},
	} {
		tell(t, "nothing is served with "+c.sentence+", until that is corrected", func(s *story) {
			s.source("community", c.spec)
			eventually(s, "the status says so", func() string {
				status := get[*v1alpha1.CatalogSource](s, "community").Status
				return string(status.Reason) + ": " + status.Message
			}, "SpecInvalidError: "+c.message)
			s.reasonIs("community", "Available", "False SpecInvalid")
			edit(s, "community", func(o *v1alpha1.CatalogSource) {
				o.Spec.SourceType, o.Spec.Image = v1alpha1.SourceTypeGrpc, s.image("catalog:v1")
				o.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}
			})
			s.reasonIs("community", "Available", "True RegistryServing")
			eventually(s, "the status says nothing", func() string { return get[*v1alpha1.CatalogSource](s, "community").Status.Message }, "")
		})
	}
	tell(t, "a ConfigMap that is not there is waited for", func(s *story) {
		s.source("community", "{sourceType: configmap, configMap: content, grpcPodConfig: {securityContextConfig: restricted}}")
		s.reasonIs("community", "Available", "False ConfigMapMissing")
		s.given("{apiVersion: v1, kind: ConfigMap, metadata: {name: content}, data: {packages: '[]'}}")
		s.reasonIs("community", "Available", "True RegistryServing")
	})
}

func TestPodsOfCatalogs(t *testing.T) {
	t.Parallel()
	tell(t, "one that a person deletes comes back", func(s *story) {
		s.source("community", plainImage)
		s.reasonIs("community", "Available", "True RegistryServing")
		before := s.served("community")[0]
		remove[*corev1.Pod](s, before.Name)
		s.until("there is another one", func() bool { pods := s.served("community"); return len(pods) == 1 && pods[0].UID != before.UID })
		s.reasonIs("community", "Available", "True RegistryServing")
	})
	tell(t, "a new image takes over once it is ready, and then the old one goes", func(s *story) {
		s.source("community", plainImage)
		s.reasonIs("community", "Available", "True RegistryServing")
		s.imageIs("catalog:v2", controlplane.Image{NeverReady: true})
		edit(s, "community", func(o *v1alpha1.CatalogSource) { o.Spec.Image = s.image("catalog:v2") })
		s.until("both are there", func() bool { return len(list[*corev1.Pod](s)) == 2 })
		s.reasonIs("community", "Available", "True RegistryServing")
		s.imageIs("catalog:v2", controlplane.Image{})
		s.until("the new one is alone", func() bool {
			pods := s.served("community")
			return len(pods) == 1 && pods[0].Spec.Containers[0].Image == s.image("catalog:v2")
		})
	})
	tell(t, "an image that cannot be pulled is said, until it can", func(s *story) {
		s.imageIs("catalog:v1", controlplane.Image{Waits: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}})
		s.source("community", plainImage)
		s.reasonIs("community", "Degraded", "True ImagePullFailed")
		s.reasonIs("community", "Available", "False NoReadyPods")
		s.imageIs("catalog:v1", controlplane.Image{})
		s.reasonIs("community", "Available", "True RegistryServing")
	})
	tell(t, "they are as the spec asks", func(s *story) {
		s.source("community", "{sourceType: grpc, image: registry.example.com/NS/catalog:v1, secrets: [pull], grpcPodConfig: {securityContextConfig: restricted, "+
			"nodeSelector: {kubernetes.io/os: linux, of: NS}, tolerations: [{key: of, operator: Exists}], priorityClassName: system-cluster-critical}}")
		s.until("there is a Pod", func() bool { return len(s.served("community")) == 1 })
		spec := s.served("community")[0].Spec
		require.Equal(s, map[string]string{"kubernetes.io/os": "linux", "of": s.ns}, spec.NodeSelector)
		require.Equal(s, "system-cluster-critical", spec.PriorityClassName)
		require.Contains(s, spec.Tolerations, corev1.Toleration{Key: "of", Operator: corev1.TolerationOpExists})
		require.True(s, *spec.SecurityContext.RunAsNonRoot)
		s.until("its account has the secret", func() bool {
			account := get[*corev1.ServiceAccount](s, "community")
			return len(account.ImagePullSecrets) > 0 && account.ImagePullSecrets[0].Name == "pull"
		})
	})
	tell(t, "a Service that a person deletes comes back", func(s *story) {
		s.source("community", plainImage)
		s.reasonIs("community", "Available", "True RegistryServing")
		before := get[*corev1.Service](s, "community").UID
		remove[*corev1.Service](s, "community")
		s.until("there is another one", func() bool { uid := get[*corev1.Service](s, "community").UID; return uid != "" && uid != before })
	})
	tell(t, "all goes with the CatalogSource", func(s *story) {
		s.source("community", plainImage)
		s.reasonIs("community", "Available", "True RegistryServing")
		remove[*v1alpha1.CatalogSource](s, "community")
		s.until("nothing is left", func() bool { return len(s.served("community")) == 0 && !exists[*corev1.Service](s, "community") })
	})
}
