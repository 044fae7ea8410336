// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// pack is a package of a catalog. Its first channel is the default one.
type pack struct {
	name, defaultChannel string
	channels             []resolution.Channel
	changes              map[string][]change
	deprecations         []resolution.Deprecation
}

// change makes a bundle another than the usual one.
type change func(s *story, b *bundle)

// bundle is one version of an operator, before it is put into a catalog.
type bundle struct {
	csv        *v1alpha1.ClusterServiceVersion
	objects    []olmcore.Object // besides the csv
	properties []olmcore.Property
	image      string // empty: the catalog holds the manifests themselves
	spoil      func(image *bundleImage)
}

func pkg(name string) *pack { return &pack{name: name, changes: map[string][]change{}} }

// channel adds a channel. An entry is written like
//
//	alpha.v2.0.0 replaces alpha.v1.0.0 skips alpha.v1.1.0,alpha.v1.2.0 skipRange >=1.0.0 <2.0.0
//
// where everything but the name may be left out. Each entry has a bundle, which is the usual one unless bundle says
// more.
func (p *pack) channel(name string, entries ...string) *pack {
	c := resolution.Channel{Name: name}
	for _, text := range entries {
		rest, skipRange, _ := strings.Cut(text, " skipRange ")
		words := strings.Fields(rest)
		entry := resolution.ChannelEntry{Name: words[0], SkipRange: skipRange}
		for i := 1; i+1 < len(words); i += 2 {
			switch words[i] {
			case "replaces":
				entry.Replaces = words[i+1]
			case "skips":
				entry.Skips = strings.Split(words[i+1], ",")
			default:
				panic(fmt.Sprintf("channel entry %q: unknown word %q", text, words[i]))
			}
		}
		c.Entries = append(c.Entries, entry)
	}
	p.channels = append(p.channels, c)
	p.defaultChannel = cmp.Or(p.defaultChannel, name)
	return p
}

// bundle changes the bundle of an entry.
func (p *pack) bundle(name string, changes ...change) *pack {
	p.changes[name] = append(p.changes[name], changes...)
	return p
}

// deprecate deprecates the package, or one of its channels ("channel stable") or bundles ("bundle alpha.v1.0.0").
func (p *pack) deprecate(what, message string) *pack {
	d := resolution.Deprecation{Message: message}
	switch word, name, _ := strings.Cut(what, " "); word {
	case "package":
	case "channel":
		d.Channel = name
	case "bundle":
		d.Bundle = name
	default:
		panic("deprecate " + what)
	}
	p.deprecations = append(p.deprecations, d)
	return p
}

// build makes the package that a catalog of the story holds.
func (p *pack) build(s *story) resolution.Package {
	made := resolution.Package{Name: p.name, DefaultChannel: p.defaultChannel, Channels: p.channels, Deprecations: p.deprecations}
	known := map[string]bool{}
	for _, channel := range p.channels {
		for _, entry := range channel.Entries {
			if !known[entry.Name] {
				made.Bundles = append(made.Bundles, p.bundleOf(s, entry))
			}
			known[entry.Name] = true
		}
	}
	return made
}

func (p *pack) bundleOf(s *story, entry resolution.ChannelEntry) resolution.Bundle {
	_, version, _ := strings.Cut(entry.Name, ".v")
	b := &bundle{csv: usualCSV(s, p.name, entry, version)}
	b.property("olm.package", map[string]string{"packageName": p.name, "version": version})
	for _, change := range p.changes[entry.Name] {
		change(s, b)
	}
	made := resolution.Bundle{Name: entry.Name, Bundle: olmcore.Bundle{Image: b.image, Properties: b.properties}}
	objects := append([]olmcore.Object{b.csv}, b.objects...)
	if b.image == "" {
		made.Objects = objects
		return made
	}
	image := bundleImage{files: filesOf(objects)}
	if b.spoil != nil {
		b.spoil(&image)
	}
	contents.setImage(b.image, image)
	return made
}

// usualCSV is an operator with one Deployment, for any OperatorGroup but those of several namespaces.
func usualCSV(s *story, name string, entry resolution.ChannelEntry, version string) *v1alpha1.ClusterServiceVersion {
	csv := decodeManifest[*v1alpha1.ClusterServiceVersion](s, strings.NewReplacer("PKG", name, "VERSION", version).Replace(`
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: PKG.vVERSION}
spec:
  displayName: PKG
  version: VERSION
  installModes:
  - {type: OwnNamespace, supported: true}
  - {type: SingleNamespace, supported: true}
  - {type: MultiNamespace, supported: false}
  - {type: AllNamespaces, supported: true}
  install:
    strategy: deployment
    spec:
      permissions:
      - {serviceAccountName: PKG, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}
      deployments:
      - name: PKG
        spec:
          replicas: 1
          selector: {matchLabels: {app: PKG}}
          template:
            metadata: {labels: {app: PKG}}
            spec:
              serviceAccountName: PKG
              containers: [{name: operator, image: "registry.example.com/NS/PKG:vVERSION"}]
`))
	csv.Spec.Replaces, csv.Spec.Skips = entry.Replaces, entry.Skips
	if entry.SkipRange != "" {
		csv.Annotations = map[string]string{"olm.skipRange": entry.SkipRange}
	}
	return csv
}

func (b *bundle) property(kind string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	b.properties = append(b.properties, olmcore.Property{Type: kind, Value: data})
}

// brings adds manifests, as YAML.
func brings(manifests string) change {
	return func(s *story, b *bundle) { b.objects = append(b.objects, s.objects(manifests)...) }
}

// owns adds the CustomResourceDefinition of a kind in the group NS.example.com, which the operator provides.
func owns(kind string) change {
	return func(s *story, b *bundle) {
		plural := strings.ToLower(kind) + "s"
		b.objects = append(b.objects, s.objects(s.crd(kind))...)
		b.csv.Spec.CustomResourceDefinitions.Owned = append(b.csv.Spec.CustomResourceDefinitions.Owned,
			v1alpha1.CRDDescription{Name: plural + "." + s.apiGroup(), Version: "v1", Kind: kind})
		b.property("olm.gvk", map[string]string{"group": s.apiGroup(), "kind": kind, "version": "v1"})
	}
}

// requires lists a kind of the group NS.example.com that the operator needs.
func requires(kind string) change {
	return func(s *story, b *bundle) {
		b.csv.Spec.CustomResourceDefinitions.Required = append(b.csv.Spec.CustomResourceDefinitions.Required,
			v1alpha1.CRDDescription{Name: strings.ToLower(kind) + "s." + s.apiGroup(), Version: "v1", Kind: kind})
		b.property("olm.gvk.required", map[string]string{"group": s.apiGroup(), "kind": kind, "version": "v1"})
	}
}

// requiresPackage lists a package that the operator needs, in a range of versions.
func requiresPackage(name, versions string) change {
	return func(_ *story, b *bundle) {
		b.property("olm.package.required", map[string]string{"packageName": name, "versionRange": versions})
	}
}

// has adds a property of the bundle.
func has(property string, value any) change {
	return func(_ *story, b *bundle) { b.property(property, value) }
}

// edited changes the ClusterServiceVersion of the bundle.
func edited(edit func(csv *v1alpha1.ClusterServiceVersion)) change {
	return func(_ *story, b *bundle) { edit(b.csv) }
}

// inImage: the catalog names the bundle's image only, which has to be unpacked; spoil, unless nil, makes it another
// one.
func inImage(spoil func(image *bundleImage)) change {
	return func(s *story, b *bundle) {
		b.image, b.spoil = s.image("bundles/"+b.csv.Name), spoil
	}
}

// supports sets the install modes of the operator to those named.
func supports(modes ...v1alpha1.InstallModeType) change {
	return edited(func(csv *v1alpha1.ClusterServiceVersion) {
		for i := range csv.Spec.InstallModes {
			csv.Spec.InstallModes[i].Supported = slices.Contains(modes, csv.Spec.InstallModes[i].Type)
		}
	})
}
