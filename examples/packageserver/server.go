// SPDX-License-Identifier: Apache-2.0

package packageserver

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"

	"github.com/olmcore/olm/subscription/resolution/packages"
)

var resource = schema.GroupResource{Group: packages.GroupVersion.Group, Resource: "packagemanifests"}

var (
	scheme = newScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(packages.GroupVersion, &packages.PackageManifest{}, &packages.PackageManifestList{})
	metav1.AddToGroupVersion(s, packages.GroupVersion)
	utilruntime.Must(s.SetVersionPriority(packages.GroupVersion))
	// What every API server has: discovery, statuses, options.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, unversioned)
	s.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return s
}

// NewConfig returns what the server needs of an API server's configuration. How it serves, authenticates and authorizes
// is the caller's: ApplyTo of the options of k8s.io/apiserver.
func NewConfig() *genericapiserver.RecommendedConfig {
	config := genericapiserver.NewRecommendedConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	namer := openapinamer.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	config.OpenAPIConfig.Info.Title, config.OpenAPIV3Config.Info.Title = "PackageManifests", "PackageManifests"
	return config
}

// New returns an API server that serves content, not started yet: PrepareRun makes it whole. Errors are those of a
// configuration that is not complete.
func New(config *genericapiserver.RecommendedConfig, content *Content) (*genericapiserver.GenericAPIServer, error) {
	server, err := config.Complete().New("packageserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(packages.GroupVersion.Group, scheme, metav1.ParameterCodec, codecs)
	group.NegotiatedSerializer = textual{codecs}
	group.VersionedResourcesStorageMap[packages.GroupVersion.Version] = map[string]rest.Storage{
		resource.Resource: storage{content}, resource.Resource + "/icon": icons{content},
	}
	return server, server.InstallAPIGroup(&group)
}

// textual offers JSON and YAML: PackageManifests have no binary form, and a client that prefers one takes JSON then.
type textual struct{ serializer.CodecFactory }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (t textual) SupportedMediaTypes() []runtime.SerializerInfo {
	binary := func(i runtime.SerializerInfo) bool { return !i.EncodesAsText }
	return slices.DeleteFunc(slices.Clone(t.CodecFactory.SupportedMediaTypes()), binary)
}
