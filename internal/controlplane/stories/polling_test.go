// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"fmt"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/controlplane"
)

// polledImage is a catalog whose image is looked at every two seconds.
const polledImage = "{sourceType: grpc, image: registry.example.com/NS/catalog:latest, grpcPodConfig: {securityContextConfig: restricted}, " +
	"updateStrategy: {registryPoll: {interval: 2s}}}"

// imageIDs are those of the Pods that a catalog's Service selects.
func (s *story) imageIDs(catalog string) (ids []string) {
	for _, p := range s.served(catalog) {
		for _, c := range p.Status.ContainerStatuses {
			ids = append(ids, c.ImageID)
		}
	}
	return ids
}

func oneVersion() *pack { return pkg("alpha").channel("stable", "alpha.v1.0.0") }

func twoVersions() *pack {
	return pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0")
}

func TestCatalogsArePolled(t *testing.T) {
	t.Parallel()
	// polled begins with an operator from a catalog that is polled.
	polled := func(s *story) {
		s.group()
		s.push("catalog:latest", "1", oneVersion())
		s.source("community", polledImage)
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
	}
	const upToDate = "True UpToDate: the last poll found the content that is served"
	tell(t, "an image with the same content changes nothing", func(s *story) {
		polled(s)
		before := s.served("community")
		require.Len(s, before, 1)
		says[*v1alpha1.CatalogSource](s, "community", "UpdatePolled", upToDate)
		first := *get[*v1alpha1.CatalogSource](s, "community").Status.LatestImageRegistryPoll
		s.until("it was polled again", func() bool {
			return first.Before(get[*v1alpha1.CatalogSource](s, "community").Status.LatestImageRegistryPoll)
		})
		says[*v1alpha1.CatalogSource](s, "community", "UpdatePolled", upToDate)
		require.Equal(s, before[0].UID, s.served("community")[0].UID)
		s.installed("alpha", "alpha.v1.0.0")
		require.Len(s, list[*v1alpha1.InstallPlan](s), 1)
	})
	tell(t, "an image with new content takes over, and Subscriptions follow it", func(s *story) {
		polled(s)
		s.push("catalog:latest", "2", twoVersions())
		eventually(s, "the new content is served", func() []string { return s.imageIDs("community") }, []string{"registry.example.com/NS/catalog:latest@sha256:2"})
		s.installed("alpha", "alpha.v1.1.0")
		s.reasonIs("community", "Available", "True RegistryServing")
	})
	tell(t, "an image with new content that does not start leaves the old one serving, until it does", func(s *story) {
		polled(s)
		before := s.served("community")[0].UID
		s.imageIs("catalog:latest", controlplane.Image{Waits: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}})
		says[*v1alpha1.CatalogSource](s, "community", "UpdatePolled", "False CandidateFailed: the pod of the last poll crashes")
		s.reasonIs("community", "Available", "True RegistryServing")
		require.Equal(s, before, s.served("community")[0].UID)
		s.installed("alpha", "alpha.v1.0.0")
		s.push("catalog:latest", "2", twoVersions())
		s.installed("alpha", "alpha.v1.1.0")
	})
	tell(t, "an image that is pinned by its digest is not polled", func(s *story) {
		s.source("community", "{sourceType: grpc, image: 'registry.example.com/NS/catalog@sha256:"+digest+"', grpcPodConfig: {securityContextConfig: restricted}, "+
			"updateStrategy: {registryPoll: {interval: 2s}}}")
		s.reasonIs("community", "Available", "True RegistryServing")
		says[*v1alpha1.CatalogSource](s, "community", "UpdatePolled", "False ImagePinnedByDigest: the image is pinned by its digest and cannot change")
		require.Nil(s, get[*v1alpha1.CatalogSource](s, "community").Status.LatestImageRegistryPoll)
	})
	tell(t, "an address is not polled, and says so", func(s *story) {
		s.serve("community", oneVersion())
		s.source("community", "{sourceType: grpc, address: 'community.NS.svc:50051', updateStrategy: {registryPoll: {interval: 2s}}}")
		says[*v1alpha1.CatalogSource](s, "community", "UpdatePolled", "False PollingDisabled: only images are polled")
		s.reasonIs("community", "Available", "True ConnectionReady")
	})
	tell(t, "an interval that is none is said, and the image is served all the same", func(s *story) {
		s.source("community", "{sourceType: grpc, image: registry.example.com/NS/catalog:latest, grpcPodConfig: {securityContextConfig: restricted}, "+
			"updateStrategy: {registryPoll: {interval: 45mError.code}}}")
		eventually(s, "the status says so", func() string {
			status := get[*v1alpha1.CatalogSource](s, "community").Status
			return string(status.Reason) + ": " + status.Message
		}, `InvalidIntervalError: error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: time: unknown unit "mError" in duration "45mError.code"`)
		s.reasonIs("community", "Degraded", "True PollIntervalInvalid")
		s.reasonIs("community", "Available", "True RegistryServing")
		edit(s, "community", func(o *v1alpha1.CatalogSource) {
			*o.Spec.UpdateStrategy.RegistryPoll = v1alpha1.RegistryPoll{RawInterval: "45m"}
		})
		eventually(s, "the status says nothing", func() string { return get[*v1alpha1.CatalogSource](s, "community").Status.Message }, "")
	})
}

const digest = "0123456789012345678901234567890123456789012345678901234567890123"

func TestImagesOfCatalogsFollowATemplate(t *testing.T) {
	t.Parallel()
	// templated is a catalog with a template of its image.
	templated := func(s *story, template, image string) {
		s.given("{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: community, annotations: {olm.catalogImageTemplate: '" + template + "'}}, " +
			"spec: {sourceType: grpc, image: '" + image + "', grpcPodConfig: {securityContextConfig: restricted}}}")
	}
	tell(t, "with the version of Kubernetes in it", func(s *story) {
		version, err := semver.ParseTolerant(world.user.Version)
		require.NoError(s, err, "the API server tells its version")
		templated(s, "registry.example.com/NS/catalog:v{kube_major_version}.{kube_minor_version}", "registry.example.com/NS/catalog:old")
		want := s.image(fmt.Sprintf("catalog:v%d.%d", version.Major, version.Minor))
		eventually(s, "the spec follows", func() string { return get[*v1alpha1.CatalogSource](s, "community").Spec.Image }, want)
		says[*v1alpha1.CatalogSource](s, "community", "TemplatesHaveResolved", "True AllTemplatesResolved: catalog image reference was successfully resolved")
		says[*v1alpha1.CatalogSource](s, "community", "ResolvedImage", "True AllTemplatesResolved: "+want)
		s.reasonIs("community", "Available", "True RegistryServing")
		s.until("that image serves alone", func() bool {
			pods := s.served("community")
			return len(pods) == 1 && pods[0].Spec.Containers[0].Image == want
		})
	})
	tell(t, "and one that gives no image leaves the spec as it is, until it is corrected", func(s *story) {
		templated(s, "registry.example.com/NS/catalog:{kube_flavour}", "registry.example.com/NS/catalog:old")
		says[*v1alpha1.CatalogSource](s, "community", "TemplatesHaveResolved",
			"False UnableToResolve: cannot construct catalog image reference, because one or more template(s) has improper syntax")
		says[*v1alpha1.CatalogSource](s, "community", "ResolvedImage", "False UnableToResolve: registry.example.com/NS/catalog:{kube_flavour}")
		s.reasonIs("community", "Available", "True RegistryServing")
		require.Equal(s, s.image("catalog:old"), get[*v1alpha1.CatalogSource](s, "community").Spec.Image)
		edit(s, "community", func(o *v1alpha1.CatalogSource) { o.Annotations["olm.catalogImageTemplate"] = s.image("catalog:new") })
		says[*v1alpha1.CatalogSource](s, "community", "ResolvedImage", "True AllTemplatesResolved: registry.example.com/NS/catalog:new")
	})
	tell(t, "and without one nothing is said of it", func(s *story) {
		templated(s, "registry.example.com/NS/catalog:new", "registry.example.com/NS/catalog:old")
		says[*v1alpha1.CatalogSource](s, "community", "ResolvedImage", "True AllTemplatesResolved: registry.example.com/NS/catalog:new")
		edit(s, "community", func(o *v1alpha1.CatalogSource) { delete(o.Annotations, "olm.catalogImageTemplate") })
		says[*v1alpha1.CatalogSource](s, "community", "ResolvedImage", "")
		says[*v1alpha1.CatalogSource](s, "community", "TemplatesHaveResolved", "")
		require.Equal(s, s.image("catalog:new"), get[*v1alpha1.CatalogSource](s, "community").Spec.Image)
	})
}
