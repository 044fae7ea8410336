// SPDX-License-Identifier: Apache-2.0

package packageserver

import (
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	aggregator "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/olmcore/olm/subscription/resolution/packages"
)

// descriptions are what `kubectl explain packagemanifests` says of fields, by the way to them.
var descriptions = map[string]string{
	"":                                            "PackageManifest is one package of one catalog: what could be installed from it. It is read-only.",
	"spec":                                        "There is nothing to specify.",
	"status":                                      "What the catalog says of the package.",
	"status.catalogSource":                        "Name of the CatalogSource, as a Subscription names it in spec.source.",
	"status.catalogSourceNamespace":               "Namespace of the CatalogSource, as a Subscription names it in spec.sourceNamespace.",
	"status.catalogSourceDisplayName":             "Name of the CatalogSource for people.",
	"status.catalogSourcePublisher":               "Who publishes the CatalogSource.",
	"status.provider":                             "Who provides the operator.",
	"status.packageName":                          "Name of the package, as a Subscription names it in spec.name.",
	"status.deprecation":                          "Why the package should not be used any more.",
	"status.defaultChannel":                       "The channel that is installed from unless a Subscription names another.",
	"status.channels":                             "The channels from which something can be installed, sorted by name.",
	"status.channels.name":                        "Name of the channel, as a Subscription names it in spec.channel.",
	"status.channels.currentCSV":                  "Name of the ClusterServiceVersion at the head of the channel.",
	"status.channels.currentCSVDesc":              "The head of the channel. Its icon is left out: the subresource icon returns it.",
	"status.channels.deprecation":                 "Why the channel should not be used any more.",
	"status.channels.entries":                     "All versions in the channel, the newest first.",
	"status.channels.entries.name":                "Name of the ClusterServiceVersion.",
	"status.channels.entries.version":             "Its version.",
	"status.channels.currentCSVDesc.installModes": "Into which OperatorGroups the version fits.",
}

// definitions returns the models of the API: those of Kubernetes, and two of ours, whose parts are written out in
// place.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := aggregator.GetOpenAPIDefinitions(ref)
	manifest := object("", reflect.TypeFor[packages.PackageManifest](), ref)
	all[packages.PackageManifest{}.OpenAPIModelName()] = common.OpenAPIDefinition{
		Schema: manifest, Dependencies: []string{metav1.ObjectMeta{}.OpenAPIModelName()},
	}
	list := spec.Schema{SchemaProps: spec.SchemaProps{
		Type: []string{"object"}, Required: []string{"items"},
		Description: "PackageManifestList is a list of PackageManifests.",
		Properties: map[string]spec.Schema{
			"metadata": referred(ref, metav1.ListMeta{}.OpenAPIModelName()),
			"items":    *spec.ArrayProperty(new(referred(ref, packages.PackageManifest{}.OpenAPIModelName()))),
		},
	}}
	for _, name := range []string{"kind", "apiVersion"} {
		list.Properties[name] = manifest.Properties[name]
	}
	all[packages.PackageManifestList{}.OpenAPIModelName()] = common.OpenAPIDefinition{
		Schema: list, Dependencies: []string{metav1.ListMeta{}.OpenAPIModelName(), packages.PackageManifest{}.OpenAPIModelName()},
	}
	return all
}

func referred(ref common.ReferenceCallback, model string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(model)}}
}

// object returns the schema of a struct that is found at a path.
func object(path string, t reflect.Type, ref common.ReferenceCallback) spec.Schema {
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Description: descriptions[path], Properties: map[string]spec.Schema{}}}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case options == "inline":
			maps.Copy(s.Properties, object(path, field.Type, ref).Properties)
		case field.Type == reflect.TypeFor[metav1.ObjectMeta]():
			s.Properties[name] = referred(ref, metav1.ObjectMeta{}.OpenAPIModelName())
		default:
			s.Properties[name] = value(strings.TrimPrefix(path+"."+name, "."), field.Type, ref)
		}
	}
	return s
}

// value returns the schema of a value of a type.
func value(path string, t reflect.Type, ref common.ReferenceCallback) (s spec.Schema) {
	switch t.Kind() {
	case reflect.Pointer:
		s = value(path, t.Elem(), ref)
	case reflect.Struct:
		s = object(path, t, ref)
	case reflect.Map:
		item := value(path, t.Elem(), ref)
		s = *spec.MapProperty(&item)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 { // any JSON
			return spec.Schema{}
		}
		item := value("", t.Elem(), ref)
		if t.Elem().Kind() == reflect.Struct {
			item = object(path, t.Elem(), ref)
			item.Description = ""
		}
		s = *spec.ArrayProperty(&item)
	case reflect.Bool:
		s = *spec.BoolProperty()
	case reflect.Int32:
		s = *spec.Int32Property()
	default:
		s = *spec.StringProperty()
	}
	s.Description = descriptions[path]
	return s
}
