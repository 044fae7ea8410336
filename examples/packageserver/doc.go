// SPDX-License-Identifier: Apache-2.0

// Package packageserver serves what catalogs have to offer as PackageManifests, read-only, in an aggregated API: what
// `kubectl get packagemanifests`, consoles and scripts ask for.
//
//	content := &packageserver.Content{GlobalNamespace: "olm"}
//	config := packageserver.NewConfig() // then: how it serves, authenticates and authorizes
//	server, err := packageserver.New(config, content)
//	content.Put(key, packages)          // whenever the content of a CatalogSource is read
//	err = content.Follow(ctx, client)   // which CatalogSources there are
//	err = server.PrepareRun().RunWithContext(ctx)
//
// Package registries reads the content from registries. What is shown is package subscription/resolution/packages'
// work.
package packageserver
